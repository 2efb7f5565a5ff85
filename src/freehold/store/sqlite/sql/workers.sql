select owner, manager, host, pid, started_at, seen_at, expires_at, concurrency, running, waiting,
    finished, state, version, queues, tasks
from worker
where expires_at > clock()
order by started_at, owner
