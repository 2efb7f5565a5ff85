-- A heartbeat from the future was sent before the clock was set back; a live worker soon sends another.
select owner, manager, host, pid, started_at, seen_at, expires_at, concurrency, running, waiting,
    finished, state, version, queues, tasks
from worker
where expires_at > clock() and seen_at <= clock()
order by started_at, owner
