-- A heartbeat from the future was sent before the clock was set back; a live worker soon sends another.
select owner, manager, host, pid, started_at, seen_at, expires_at, concurrency, running, waiting,
    finished, state, version, queues::text, tasks::text
from {schema}.worker
where expires_at > (select {schema}.clock()) and seen_at <= (select {schema}.clock())
order by started_at, owner
