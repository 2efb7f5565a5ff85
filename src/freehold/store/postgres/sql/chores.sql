-- What a sweep would find to do, in one look that takes no lock; and how many could do it.
with recursive leased_queue as (
    (select queue from {schema}.job where stage = 'h' order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where j.stage = 'h' and j.queue > q.queue order by j.queue limit 1)
    from leased_queue q where q.queue is not null
)
select
    exists (
        select from leased_queue q
        cross join lateral (
            select from {schema}.job j
            where j.stage = 'h' and j.queue = q.queue and j.lease_expires_at <= t.now
            order by j.queue, j.lease_expires_at limit 1) e) as expired,
    exists (select from {schema}.job where stage = 'l') as limited,
    exists (select from {schema}.lane where paused_until <= t.now) as stopped,
    exists (select from {schema}.job where stage = 'u' and task = any (:tasks::text[])) as parked,
    extract(epoch from (
        select run_at from {schema}.job where stage in ('w','b') order by run_at limit 1) - t.now)
        ::double precision as due_seconds,
    (select count(*) from {schema}.worker where expires_at > t.now) as workers
from (select {schema}.clock() as now) t
