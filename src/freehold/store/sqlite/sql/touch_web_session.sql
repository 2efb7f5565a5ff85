-- properties: not_notified
update web_session set seen_at = clock() where digest = :digest
