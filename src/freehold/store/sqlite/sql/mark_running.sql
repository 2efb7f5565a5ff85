-- properties: not_notified
update job set started_at = coalesce(started_at,
    max(leased_at, clock() - cast(round(:ran_seconds * 1000000) as integer)))
where {lease_holds}
returning id
