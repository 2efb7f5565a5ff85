c.id, c.lease_token, c.task, c.queue, c.args::text, c.attempt, c.max_attempts, c.lost_attempts,
       c.priority, c.target, c.timeout_seconds, c.policy::text, c.limit_key, c.meta::text,
       coalesce(c.parked_until <= c.leased_at, false)
