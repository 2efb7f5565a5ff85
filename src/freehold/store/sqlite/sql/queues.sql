-- Queue by queue through the indexes: the number of jobs does not matter.
with recursive ready_queue as (
    select min(queue) as queue from job where stage in ({ready}, {lane_head})
    union all
    select (select min(j.queue) from job j where j.stage in ({ready}, {lane_head}) and j.queue > q.queue)
    from ready_queue q where q.queue is not null
),
leased_queue as (
    select min(queue) as queue from job where stage = {leased}
    union all
    select (select min(j.queue) from job j where j.stage = {leased} and j.queue > q.queue)
    from leased_queue q where q.queue is not null
),
other_queue as (
    select min(queue) as queue from job where stage not in ({ready}, {lane_head}, {leased})
    union all
    select (select min(j.queue) from job j
            where j.stage not in ({ready}, {lane_head}, {leased}) and j.queue > q.queue)
    from other_queue q where q.queue is not null
),
named as (
    select queue as name from ready_queue where queue is not null
    union select queue from leased_queue where queue is not null
    union select queue from other_queue where queue is not null
    -- A row without any setting in force is what a resumed or ended pause has left.
    union select name from queue
    where name <> '*' and (weight <> 1 or max_leases is not null or rate_starts is not null
        or paused_at is not null and coalesce(paused_until > clock(), 1))
)
select {queue_columns}
from named n
{queue_joins}
order by n.name
