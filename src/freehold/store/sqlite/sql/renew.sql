-- properties: not_notified
update job
set heartbeat_at = clock(),
    lease_expires_at = clock() + cast(round(:lease_seconds * 1000000) as integer)
where {lease_holds}
returning id, stop_request
