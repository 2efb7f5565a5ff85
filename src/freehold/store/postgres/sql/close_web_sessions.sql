-- A digest of a token ends all sessions that the token opened.
delete from {schema}.web_session where digest = :digest::text or token_digest = :token_digest::text
