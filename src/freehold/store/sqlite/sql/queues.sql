-- Queue by queue through the indexes: the number of jobs does not matter.
with recursive ready_queue as (
    select min(queue) as queue from job where stage in ('r','R')
    union all
    select (select min(j.queue) from job j where j.stage in ('r','R') and j.queue > q.queue)
    from ready_queue q where q.queue is not null
),
leased_queue as (
    select min(queue) as queue from job where stage = 'h'
    union all
    select (select min(j.queue) from job j where j.stage = 'h' and j.queue > q.queue)
    from leased_queue q where q.queue is not null
),
named as (
    select queue as name from ready_queue where queue is not null
    union select queue from leased_queue where queue is not null
    union select name from queue where name <> '*'
)
select n.name,
    (select count(*) from (select 1 from job j
        where j.queue = n.name and j.stage in ('r','R') limit :bound)),
    (select count(*) from (select 1 from job j where j.queue = n.name and j.stage = 'h'
        limit :bound)),
    -- Since when: a job that waited for its time was not ready while it did.
    (select max(j.created_at, coalesce(j.run_at, j.created_at)) from job j where j.queue = n.name and j.stage in ('r','R')
     order by j.queue, -j.priority, j.id limit 1),
    p.paused_at, p.paused_by, p.pause_reason, p.paused_until,
    coalesce(s.weight, 1), s.max_leases, s.rate_starts, s.rate_seconds
from named n
left join queue s on s.name = n.name
left join queue p on p.name = n.name and p.paused_at is not null
    and coalesce(p.paused_until > clock(), 1)
order by n.name
