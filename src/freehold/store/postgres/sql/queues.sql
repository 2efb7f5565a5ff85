-- Queue by queue through the indexes: the number of jobs does not matter.
with recursive ready_queue as (
    (select queue from {schema}.job where {is_ready} order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where {is_ready} and j.queue > q.queue order by j.queue limit 1)
    from ready_queue q where q.queue is not null
),
leased_queue as (
    (select queue from {schema}.job where stage = {leased} order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where j.stage = {leased} and j.queue > q.queue order by j.queue limit 1)
    from leased_queue q where q.queue is not null
),
other_queue as (
    (select queue from {schema}.job where {is_not_ready} order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where {is_not_ready} and j.queue > q.queue order by j.queue limit 1)
    from other_queue q where q.queue is not null
),
named as (
    select queue as name from ready_queue where queue is not null
    union select queue from leased_queue where queue is not null
    union select queue from other_queue where queue is not null
    -- A row without any setting in force is what a resumed or ended pause has left.
    union select name from {schema}.queue
    where name <> '*' and (weight <> 1 or max_leases is not null or rate_starts is not null
        or paused_at is not null and coalesce(paused_until > {schema}.clock(), true))
)
select {queue_columns}
from named n
{queue_joins}
order by n.name
