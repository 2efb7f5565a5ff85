, page as materialized (
    -- In the order of `examined`, which is read only as far as the page needs.
    select * from examined l
    where l.state = any (:states::text[])
      and (:queue::text is null or l.queue = :queue::text)
      and (:task::text is null or l.task = :task::text)
      and (:target::text is null or l.target = :target::text)
      and (:tag::text is null or l.tags::jsonb ? :tag::text)
      and (:meta::text is null or l.meta::jsonb @> :meta::jsonb)
      and (:worker::text is null or l.finished_by = :worker::text)
      and (:error::text is null or {is_error_type})
      and (:created_since::timestamptz is null or l.created_at >= :created_since::timestamptz)
      and (:created_until::timestamptz is null or l.created_at < :created_until::timestamptz)
      and (:finished_since::timestamptz is null or l.finished_at >= :finished_since::timestamptz)
      and (:finished_until::timestamptz is null or l.finished_at < :finished_until::timestamptz)
    limit :limit::integer
)
select m.low, m.low_created_at, m.examined, {history_columns}
from (select case when short then (select min(id) from examined) end as low,
             case when short then (select created_at from examined order by id limit 1) end as low_created_at,
             case when short then (select count(*) from examined) end as examined
      from (select (select count(*) from page) < :limit::integer as short) s) m
left join page h on true
order by h.id desc
