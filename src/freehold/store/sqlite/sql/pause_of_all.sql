-- The pause of all queues together, if it is in force.
select paused_at, paused_by, pause_reason, paused_until from queue
where name = '*' and paused_at is not null and coalesce(paused_until > clock(), 1)
