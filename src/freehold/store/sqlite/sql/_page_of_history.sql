select m.low, m.looked_at, {history_columns}
from (select min(id) as low, count(*) as looked_at from looked_at) m
left join (
    select * from looked_at l
    where l.state in (select value from json_each(:states))
      and (:queue is null or l.queue = :queue)
      and (:task is null or l.task = :task)
      and (:target is null or l.target = :target)
      and (:tag is null or exists (select 1 from json_each(l.tags) where value = :tag))
    order by l.id desc limit :limit) h
