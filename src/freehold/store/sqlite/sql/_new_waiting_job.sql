insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, tags, policy, args, meta, waiting_key)
select clock(), due_at,
    case when :pending then {pending} when due_at > clock() then {scheduled} else {ready} end,
    :priority, :max_attempts, :timeout_seconds, :queue, :task, :target, :limit_key, :tags, :policy, :args,
    :meta, :waiting_key
from (select case when :throttled
        then max(clock(), coalesce((select next_at from throttle where key = :waiting_key), 0))
        else coalesce(:run_at, clock() + cast(round(:delay_seconds * 1000000) as integer)) end as due_at)
where not exists (select 1 from job where waiting_key = :waiting_key and stage <> {leased})
returning :position, id, 1, created_at
