j.id, j.task, j.queue, j.stage, null as state, j.priority, j.args, j.attempt, j.max_attempts,
    j.lost_attempts, j.target, j.limit_key, j.unique_key, j.tags, j.timeout_seconds, j.policy, j.created_at,
    j.run_at, j.stop_request, j.stop_requested_by, j.stop_request_reason, j.reason, j.lease_owner, j.lease_token,
    j.lease_expires_at, j.leased_at, j.heartbeat_at, j.started_at, null as finished_at,
    null as result, null as error, j.progress, j.meta, j.waiting_key, j.start_by, j.waits_for
