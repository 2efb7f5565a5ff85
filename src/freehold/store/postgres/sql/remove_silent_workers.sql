-- Workers without a heartbeat for long: killed, or disconnected. And those whose
-- last one was sent before the clock was set back: the next one inserts a live worker again.
delete from {schema}.worker where owner = any (array(
    select owner from {schema}.worker
    where expires_at <= (select {schema}.clock()) - make_interval(secs => :silent_seconds::double precision)
       or seen_at > (select {schema}.clock())
    order by owner
    for update skip locked))
returning owner
