insert into history (id, created_at, run_at, leased_at, started_at, finished_at, token,
    timeout_seconds, priority, attempt, max_attempts, lost_attempts, state, queue, task, finished_by, target,
    limit_key, unique_key, tags, policy, result, progress, args, meta)
select id, created_at, run_at, leased_at,
    coalesce(started_at, clock() - cast(round(:ran_seconds * 1000000) as integer)), clock(), lease_token,
    timeout_seconds, priority, attempt, max_attempts, lost_attempts, 'succeeded', queue, task, lease_owner,
    target, limit_key, unique_key, tags, policy, :result, progress,
    args, meta
from job where {lease_holds}
