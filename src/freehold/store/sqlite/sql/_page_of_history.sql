select m.low, m.examined, {history_columns}
from (select min(id) as low, count(*) as examined from examined) m
left join (
    select * from examined l
    where l.state in (select value from json_each(:states))
      and (:queue is null or l.queue = :queue)
      and (:task is null or l.task = :task)
      and (:target is null or l.target = :target)
      and (:tag is null or exists (select 1 from json_each(l.tags) where value = :tag))
    order by l.id desc limit :limit) h
