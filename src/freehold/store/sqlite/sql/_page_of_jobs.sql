select m.low, m.examined, {job_columns}
from (select min(id) as low, count(*) as examined from examined) m
left join (
    select * from examined l
    where case when l.stage = {pending} then 'pending' when l.stage in ({paused}, {paused_follower}) then 'paused'
               when l.stage = {failed} then 'failed' when l.stage <> {leased} then 'queued'
               when l.started_at is null then 'assigned' else 'running' end
          in (select value from json_each(:states))
      and (:queue is null or l.queue = :queue)
      and (:task is null or l.task = :task)
      and (:target is null or l.target = :target)
      and (:tag is null or exists (select 1 from json_each(l.tags) where value = :tag))
    order by l.id desc limit :limit) j
