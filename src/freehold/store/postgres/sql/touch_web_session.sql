update {schema}.web_session set seen_at = {schema}.clock() where digest = :digest::text
