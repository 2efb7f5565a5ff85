insert into history (id, created_at, run_at, leased_at, started_at, finished_at, token,
    timeout_seconds, priority, attempt, max_attempts, lost_attempts, state, queue, task, finished_by, target,
    limit_key, unique_key, tags, policy, reason, error, result, progress, args, meta)
select id, created_at, run_at, leased_at,
    coalesce(started_at, clock() - cast(round(:ran_seconds * 1000000) as integer)), clock(), lease_token,
    timeout_seconds, priority, attempt - :refund, max_attempts, lost_attempts + :lost_attempts, :state, queue, task,
    coalesce(:by, lease_owner), target, limit_key, unique_key, tags, policy, {new_reason}, :error,
    :result, progress, args, meta
from job where :leaves and id = :id and {unchanged_since_read} and stop_request is :stop_request;

update job
set stage = case when {new_run_at} > clock() then :stage_later else :stage_due end,
    run_at = {new_run_at},
    attempt = case when :fresh_attempts then 0 else attempt - :refund end,
    lost_attempts = case when :fresh_attempts then 0 else lost_attempts + :lost_attempts end,
    lease_owner = null, lease_token = null, lease_expires_at = null, leased_at = null,
    heartbeat_at = null, started_at = null,
    stop_request = null, stop_requested_by = null, stop_request_reason = null,
    reason = {new_reason},
    -- A job that a worker took must not meet a newer one with its key.
    waiting_key = case when stage <> {leased} then waiting_key end,
    waits_for = case when :keep_run_at then waits_for else :waits_for end,
    start_by = case when :keep_start_by then start_by end,
    parked_until = case when :stage_due = {parked}
        then coalesce(parked_until, clock() + cast(round(:delay_seconds * 1000000) as integer)) end
where not :leaves and id = :id and {unchanged_since_read} and stop_request is :stop_request;

delete from job where :leaves and id = :id and {unchanged_since_read} and stop_request is :stop_request
