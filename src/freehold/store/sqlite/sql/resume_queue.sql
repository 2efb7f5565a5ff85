select name from queue
where name = :queue and paused_at is not null and coalesce(paused_until > clock(), 1);

update queue set paused_at = null, paused_by = null, pause_reason = null, paused_until = null
where name = :queue
