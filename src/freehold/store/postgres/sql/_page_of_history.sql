, page as materialized (
    -- In the order of looked_at, which is read only as far as the page needs.
    select * from looked_at l
    where l.state = any (:states::text[])
      and (:queue::text is null or l.queue = :queue::text)
      and (:task::text is null or l.task = :task::text)
      and (:target::text is null or l.target = :target::text)
      and (:tag::text is null or l.tags::jsonb ? :tag::text)
    limit :limit::integer
)
select m.low, m.looked_at, {history_columns}
from (select case when short then (select min(id) from looked_at) end as low,
             case when short then (select count(*) from looked_at) end as looked_at
      from (select (select count(*) from page) < :limit::integer as short) s) m
left join page h on true
order by h.id desc
