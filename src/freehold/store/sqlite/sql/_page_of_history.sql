select m.low, m.low_created_at, m.examined, {history_columns}
from (select min(id) as low, created_at as low_created_at, count(*) as examined from examined) m
left join (
    select * from examined l
    where l.state in (select value from json_each(:states))
      and (:queue is null or l.queue = :queue)
      and (:task is null or l.task = :task)
      and (:target is null or l.target = :target)
      and (:tag is null or exists (select 1 from json_each(l.tags) where value = :tag))
      and (:meta is null or {has_meta})
      and (:worker is null or l.finished_by = :worker)
      and (:error is null or {is_error_type})
      and (:created_since is null or l.created_at >= :created_since)
      and (:created_until is null or l.created_at < :created_until)
      and (:finished_since is null or l.finished_at >= :finished_since)
      and (:finished_until is null or l.finished_at < :finished_until)
    order by l.id desc limit :limit) h
