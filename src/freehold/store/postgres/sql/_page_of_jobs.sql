, page as materialized (
    -- In the order of looked_at, which is read only as far as the page needs.
    select * from looked_at l
    where case when l.stage = 'n' then 'pending' when l.stage in ('p','q') then 'paused'
               when l.stage = 'x' then 'failed' when l.stage <> 'h' then 'queued'
               when l.started_at is null then 'assigned' else 'running' end
          = any (:states::text[])
      and (:queue::text is null or l.queue = :queue::text)
      and (:task::text is null or l.task = :task::text)
      and (:target::text is null or l.target = :target::text)
      and (:tag::text is null or l.tags::jsonb ? :tag::text)
    limit :limit::integer
)
select m.low, m.looked_at, {job_columns}
from (select case when short then (select min(id) from looked_at) end as low,
             case when short then (select count(*) from looked_at) end as looked_at
      from (select (select count(*) from page) < :limit::integer as short) s) m
left join page j on true
order by j.id desc
