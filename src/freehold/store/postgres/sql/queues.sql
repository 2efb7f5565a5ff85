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
select n.name,
    {schema}.count_ready(n.name, :bound::integer),
    (select count(*) from (select from {schema}.job j
        where j.queue = n.name and j.stage = {leased} limit :bound::integer) x),
    {schema}.count_not_ready(n.name, :bound::integer),
    -- Ready since its run_at: before that, a scheduled job was not ready.
    (select greatest(j.created_at, j.run_at) from {schema}.job j
     where j.queue = n.name and {is_ready} order by j.queue, (-j.priority), j.id limit 1),
    p.paused_at, p.paused_by, p.pause_reason, p.paused_until,
    coalesce(s.weight, 1), s.max_leases, s.rate_starts, s.rate_seconds
from named n
left join {schema}.queue s on s.name = n.name
left join {schema}.queue p on p.name = n.name and p.paused_at is not null
    and coalesce(p.paused_until > {schema}.clock(), true)
order by n.name
