-- The owner is dead: its leases end now instead of by time, and `recover` finds them. The workers of a host
-- have its name before a dot.
update job set lease_expires_at = clock()
where stage = {leased} and (lease_owner = :owner or substr(lease_owner, 1, length(:owner) + 1) = :owner || '.')
  and lease_expires_at > clock()
returning id
