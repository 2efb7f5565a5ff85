-- Lanes in which somebody waits, from where the last look ended; and the queue of their first, where
-- nobody holds the lane and it cannot begin by itself. If somebody has it in hand just now, not.
with recursive walked as (
    (select j.target, 1 as place from {schema}.job j
     where j.target > :after::text and j.stage in ({in_lane})
     order by j.target, j.id limit 1)
    union all
    select (select j.target from {schema}.job j
            where j.target > w.target and j.stage in ({in_lane})
            order by j.target, j.id limit 1), w.place + 1
    from walked w where w.target is not null and w.place < :limit::integer
),
adrift as materialized (
    select f.id from walked w
    cross join lateral (
        select j.id, j.stage from {schema}.job j
        where j.target = w.target and j.stage in ({in_lane})
        order by j.target, j.id limit 1) f
    where f.stage in ('f','q')
      and (select h.id from {schema}.job h
           where h.target = w.target and h.stage in ({holds_lane}) limit 1) is null
),
free as materialized (
    select target, queue from {schema}.job
    where id = any (array(select id from adrift))
    for update skip locked
)
select w.target, f.queue
from walked w left join free f on f.target = w.target
where w.target is not null
order by w.place
