-- Lanes in which somebody waits, from where the last look ended; and the queue of their first, where
-- nobody holds the lane and it cannot begin by itself.
with recursive walked (target, place) as (
    select min(target), 1 from job
    where target is not null and stage in ({in_lane}) and target > :after
    union all
    select (select min(j.target) from job j
            where j.target is not null and j.stage in ({in_lane}) and j.target > w.target),
           w.place + 1
    from walked w where w.target is not null and w.place < :limit
)
select w.target,
       (select f.queue
        from (select l.queue, l.stage from job l
              where l.target = w.target and l.stage in ({in_lane})
              order by l.target, l.id limit 1) f
        where f.stage in ('f','q')
          and not exists (select 1 from job h
                          where h.target = w.target and h.stage in ({holds_lane})))
from walked w where w.target is not null
order by w.place
