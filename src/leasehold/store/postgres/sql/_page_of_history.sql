select m.low, m.looked_at, {history_columns}
from (select min(id) as low, count(*) as looked_at from looked_at) m
left join lateral (
    select * from looked_at l
    where l.state = any (:states::text[])
      and (:queue::text is null or l.queue = :queue::text)
      and (:task::text is null or l.task = :task::text)
      and (:target::text is null or l.target = :target::text)
      and (:tag::text is null or l.tags::jsonb ? :tag::text)
    order by l.id desc limit :limit::integer) h on true
