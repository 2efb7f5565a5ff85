select m.low, m.low_created_at, m.examined, {job_columns}
from (select min(id) as low, created_at as low_created_at, count(*) as examined from examined) m
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
      and (:meta is null or {has_meta})
      and (:worker is null or l.lease_owner = :worker)
      and (:error is null or {is_error_type})
      and (:created_since is null or l.created_at >= :created_since)
      and (:created_until is null or l.created_at < :created_until)
    order by l.id desc limit :limit) j
