j.id, j.task, j.queue, j.stage::text as stage, null::text as state, j.priority, j.args::text as args,
    j.attempt, j.max_attempts, j.lost_attempts, j.target, j.limit_key, j.unique_key, j.tags::text as tags,
    j.timeout_seconds, j.policy::text as policy, j.created_at, j.run_at, j.stop_request::text as stop_request,
    j.stop_requested_by, j.stop_request_reason, j.reason, j.lease_owner, j.lease_token, j.lease_expires_at,
    j.leased_at, j.heartbeat_at, j.started_at, null::timestamptz as finished_at,
    null::text as result, null::text as error, j.progress::text as progress, j.meta::text as meta,
    j.waiting_key, j.start_by, j.waits_for
