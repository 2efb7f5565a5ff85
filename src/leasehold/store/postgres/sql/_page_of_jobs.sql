select m.low, m.looked_at, {job_columns}
from (select min(id) as low, count(*) as looked_at from looked_at) m
left join lateral (
    select * from looked_at l
    where case when l.stage = 'n' then 'pending' when l.stage in ('p','q') then 'paused'
               when l.stage = 'x' then 'failed' when l.stage <> 'h' then 'queued'
               when l.started_at is null then 'assigned' else 'running' end
          = any (:states::text[])
      and (:queue::text is null or l.queue = :queue::text)
      and (:task::text is null or l.task = :task::text)
      and (:target::text is null or l.target = :target::text)
      and (:tag::text is null or l.tags::jsonb ? :tag::text)
    order by l.id desc limit :limit::integer) j on true
