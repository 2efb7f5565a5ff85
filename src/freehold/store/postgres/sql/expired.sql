-- Expired leases, oldest first within each queue. Takes no lock: Python decides, and `transition` writes
-- only where the lease is still expired.
with recursive leased_queue as (
    (select queue from {schema}.job where stage = {leased} order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where j.stage = {leased} and j.queue > q.queue order by j.queue limit 1)
    from leased_queue q where q.queue is not null
)
select e.*
from leased_queue q
cross join lateral (
    select j.id, j.lease_token, j.task, j.queue, j.args::text, j.attempt, j.max_attempts, j.lost_attempts,
           j.priority, j.target, j.timeout_seconds, j.policy::text, j.limit_key, j.meta::text,
           false, j.lease_owner, j.stop_request
    from {schema}.job j
    where j.stage = {leased} and j.queue = q.queue
      and j.lease_expires_at <= (select {schema}.clock())
    order by j.queue, j.lease_expires_at, j.id
    limit :limit::integer) e
limit :limit::integer
