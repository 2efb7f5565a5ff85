select owner, manager, host, pid, started_at, seen_at, expires_at, concurrency, running, waiting,
    finished, state, version, queues::text, tasks::text
from {schema}.worker
where expires_at > (select {schema}.clock())
order by started_at, owner
