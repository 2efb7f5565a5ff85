, page as materialized (
    -- In the order of `examined`, which is read only as far as the page needs.
    select * from examined l
    where l.state = any (:states::text[])
      and (:queue::text is null or l.queue = :queue::text)
      and (:task::text is null or l.task = :task::text)
      and (:target::text is null or l.target = :target::text)
      and (:tag::text is null or l.tags::jsonb ? :tag::text)
    limit :limit::integer
)
select m.low, m.examined, {history_columns}
from (select case when short then (select min(id) from examined) end as low,
             case when short then (select count(*) from examined) end as examined
      from (select (select count(*) from page) < :limit::integer as short) s) m
left join page h on true
order by h.id desc
