-- properties: not_notified
-- A digest of a token ends all sessions that the token opened.
delete from web_session where digest = :digest or token_digest = :token_digest
