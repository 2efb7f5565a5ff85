h.id, h.task, h.queue, null::text as stage, h.state, h.priority, h.args::text as args,
    h.attempt, h.max_attempts, h.lost_attempts, h.target, h.limit_key, h.unique_key, h.tags::text as tags,
    h.timeout_seconds, h.policy::text as policy, h.created_at, h.run_at, null::text as stop_request,
    null::text as stop_requested_by, null::text as stop_request_reason, h.reason, h.finished_by, h.token,
    null::timestamptz as lease_expires_at, h.leased_at, null::timestamptz as heartbeat_at,
    h.started_at, h.finished_at, h.result::text as result, h.error::text as error, h.progress::text as progress, h.meta::text as meta,
    null::text as waiting_key, null::timestamptz as start_by, null::text as waits_for
