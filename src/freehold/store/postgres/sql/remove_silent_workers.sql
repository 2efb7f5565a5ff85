-- Workers without a heartbeat for long: killed, or disconnected.
delete from {schema}.worker where owner = any (array(
    select owner from {schema}.worker
    where expires_at <= (select {schema}.clock()) - make_interval(secs => :silent_seconds::double precision)
    order by owner
    for update skip locked))
returning owner
