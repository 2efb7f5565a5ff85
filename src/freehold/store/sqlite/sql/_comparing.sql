-- Every other change of a live job, from what was read to what was decided. The clock stands still within
-- a transaction, so that all statements below agree.
select id, {unchanged_since_read} and stop_request is :stop_request, {unchanged_since_read}, stop_request,
    stop_requested_by, {new_reason}
from job where id = :id;

insert into event (job_id, at, leased_at, started_at, due_at, token, attempt, kind, state, by,
    reason, error)
select id, clock(), leased_at,
    coalesce(started_at, clock() - cast(round(:ran_seconds * 1000000) as integer)),
    case when :state = 'queued' then {new_run_at} end,
    lease_token, attempt, :event, :state, coalesce(:by, lease_owner), {new_reason}, :error
from job where id = :id and {unchanged_since_read} and stop_request is :stop_request
