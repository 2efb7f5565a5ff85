update job set started_at = coalesce(started_at, clock())
where {lease_holds}
returning id
