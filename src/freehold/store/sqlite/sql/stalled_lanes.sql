-- Lanes with waiting jobs, after the cursor of the last scan; with queue, id and stage of the first job where
-- the lane has no holder and that job cannot become ready by itself.
with recursive scanned (target, position) as (
    select min(target), 1 from job
    where target is not null and stage in ({in_lane}) and target > :after
    union all
    select (select min(j.target) from job j
            where j.target is not null and j.stage in ({in_lane}) and j.target > w.target),
           w.position + 1
    from scanned w where w.target is not null and w.position < :limit
)
select w.target, f.queue, f.id, f.stage
from scanned w
left join job f
    on f.id = (select l.id from job l where l.target = w.target and l.stage in ({in_lane})
               order by l.target, l.id limit 1)
    and f.stage in ({follower}, {paused_follower})
    and not exists (select 1 from job h where h.target = w.target and h.stage in ({holds_lane}))
where w.target is not null
order by w.position
