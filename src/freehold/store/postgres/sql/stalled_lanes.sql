-- Lanes with waiting jobs, after the cursor of the last scan; with queue, id and stage of the first job where
-- the lane has no holder and that job cannot become ready by itself. Locked rows are left out.
with recursive scanned as (
    (select j.target, 1 as position from {schema}.job j
     where j.target > :after::text and j.stage in ({in_lane})
     order by j.target, j.id limit 1)
    union all
    select (select j.target from {schema}.job j
            where j.target > w.target and j.stage in ({in_lane})
            order by j.target, j.id limit 1), w.position + 1
    from scanned w where w.target is not null and w.position < :limit::integer
),
stalled as materialized (
    select f.id from scanned w
    cross join lateral (
        select j.id, j.stage from {schema}.job j
        where j.target = w.target and j.stage in ({in_lane})
        order by j.target, j.id limit 1) f
    where f.stage in ({follower}, {paused_follower})
      and (select h.id from {schema}.job h
           where h.target = w.target and h.stage in ({holds_lane}) limit 1) is null
),
free as materialized (
    select target, queue, id, stage::text from {schema}.job
    where id = any (array(select id from stalled))
    for update skip locked
)
select w.target, f.queue, f.id, f.stage
from scanned w left join free f on f.target = w.target
where w.target is not null
order by w.position
