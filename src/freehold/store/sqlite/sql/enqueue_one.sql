insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, tags, policy, args, meta)
select clock(), due_at,
    case when :pending then {pending} when due_at > clock() then {scheduled} else {ready} end,
    :priority, :max_attempts, :timeout_seconds, :queue, :task, :target, :limit_key, :tags, :policy,
    :args, :meta
from (select coalesce(:run_at, clock() + cast(round(:delay_seconds * 1000000) as integer)) as due_at)
returning id, created_at, null
