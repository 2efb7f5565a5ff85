-- The job of a callback is stored once: the same transaction marks the callback.
insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
    tags, policy, args, meta, start_by)
select clock(), due_at, case when due_at > clock() then {scheduled} else {ready} end, :priority, :max_attempts,
    :timeout_seconds, :queue, :task, :target, :limit_key, :tags, :policy, :args, :meta,
    max(coalesce(due_at, clock()), clock()) + cast(round(:start_by_seconds * 1000000) as integer)
from (select coalesce(:run_at, clock() + cast(round(:delay_seconds * 1000000) as integer)) as due_at)
where exists (select 1 from flow_callback where flow = :flow and moment = :moment and job_id is null)
returning id;

update flow_callback set job_id = last_insert_rowid()
where flow = :flow and moment = :moment and job_id is null
