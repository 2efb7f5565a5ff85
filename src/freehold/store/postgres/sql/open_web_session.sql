-- Each sign-in also deletes some sessions that have ended: no other cleaning is needed.
with ended as (
    delete from {schema}.web_session where digest = any (array(
        select digest from {schema}.web_session
        where expires_at <= (select {schema}.clock()) order by expires_at limit 100))
)
insert into {schema}.web_session (digest, token_digest, author, created_at, seen_at, expires_at)
select :digest::text, :token_digest::text, :author::text, t.now, t.now,
    t.now + make_interval(secs => :lifetime_seconds::double precision)
from (select {schema}.clock() as now) t
