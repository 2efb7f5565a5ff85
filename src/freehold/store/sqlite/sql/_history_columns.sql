h.id, h.task, h.queue, null as stage, h.state, h.priority, h.args, h.attempt, h.max_attempts,
    h.lost_attempts, h.target, h.limit_key, h.unique_key, h.tags, h.timeout_seconds, h.policy, h.created_at,
    h.run_at, null as stop_request, null as stop_requested_by, null as stop_request_reason, h.reason, h.finished_by, h.token,
    null as lease_expires_at, h.leased_at, null as heartbeat_at, h.started_at, h.finished_at,
    h.result, h.error, h.progress, h.meta, null as waiting_key, null as start_by, null as waits_for
