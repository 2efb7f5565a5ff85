-- properties: not_notified
-- Each sign-in also deletes some sessions that have ended: no other cleaning is needed.
delete from web_session where digest in (
    select digest from web_session where expires_at <= clock() order by expires_at limit 100);

insert into web_session (digest, token_digest, author, created_at, seen_at, expires_at)
values (:digest, :token_digest, :author, clock(), clock(),
    clock() + cast(round(:lifetime_seconds * 1000000) as integer))
