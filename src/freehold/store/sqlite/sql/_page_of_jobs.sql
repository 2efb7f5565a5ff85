select m.low, m.looked_at, {job_columns}
from (select min(id) as low, count(*) as looked_at from looked_at) m
left join (
    select * from looked_at l
    where case when l.stage = 'n' then 'pending' when l.stage in ('p','q') then 'paused'
               when l.stage = 'x' then 'failed' when l.stage <> 'h' then 'queued'
               when l.started_at is null then 'assigned' else 'running' end
          in (select value from json_each(:states))
      and (:queue is null or l.queue = :queue)
      and (:task is null or l.task = :task)
      and (:target is null or l.target = :target)
      and (:tag is null or exists (select 1 from json_each(l.tags) where value = :tag))
    order by l.id desc limit :limit) j
