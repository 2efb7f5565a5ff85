-- The owner is dead: its leases end now instead of by time, and `recover` finds them.
update job set lease_expires_at = clock()
where stage = {leased} and lease_owner = :owner and lease_expires_at > clock()
returning id
