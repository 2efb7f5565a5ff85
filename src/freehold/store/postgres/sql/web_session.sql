select s.digest, s.token_digest, s.author, s.created_at, s.seen_at, s.expires_at,
    s.seen_at < t.now - make_interval(secs => :touch_seconds::double precision) as is_stale
from {schema}.web_session s, (select {schema}.clock() as now) t
where s.digest = :digest::text and s.expires_at > t.now
    and s.seen_at > t.now - make_interval(secs => :idle_seconds::double precision)
