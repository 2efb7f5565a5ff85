-- What a sweep would find to do, without a lock; and how many workers could do it.
with recursive leased_queue as (
    (select queue from {schema}.job where stage = {leased} order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where j.stage = {leased} and j.queue > q.queue order by j.queue limit 1)
    from leased_queue q where q.queue is not null
)
select
    exists (
        select from leased_queue q
        cross join lateral (
            select from {schema}.job j
            where j.stage = {leased} and j.queue = q.queue and j.lease_expires_at <= t.now
            order by j.queue, j.lease_expires_at limit 1) e) as expired,
    exists (select from {schema}.job where stage = {limited}) as limited,
    exists (select from {schema}.lane where paused_until <= t.now) as ended_lane_pauses,
    exists (select from {schema}.job where stage = {parked} and task = any (:tasks::text[])
        and parked_until is null) as parked,
    exists (select from {schema}.job where stage = {parked} and task = any (:tasks::text[])
        and parked_until is not null) as misfits,
    extract(epoch from (
        select run_at from {schema}.job where stage in ({scheduled}, {backoff}) order by run_at limit 1) - t.now)
        ::double precision as due_seconds,
    extract(epoch from (
        select next_at from {schema}.schedule where next_at is not null order by next_at limit 1) - t.now)
        ::double precision as schedule_seconds,
    extract(epoch from (
        select start_by from {schema}.job where start_by is not null and attempt = 0 order by start_by limit 1) - t.now)
        ::double precision as late_seconds,
    exists (select from {schema}.bulk_operation where state = 'running') as bulk,
    (select name from {schema}.signal where not delivered order by name limit 1) is not null as signals,
    (select flow from {schema}.flow_end order by flow limit 1) is not null
        or (select id from {schema}.flow where due order by due, id limit 1) is not null as flows,
    (select count(*) from {schema}.worker where expires_at > t.now and seen_at <= t.now) as workers
from (select {schema}.clock() as now) t
