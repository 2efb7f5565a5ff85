-- The owner is dead: its leases end now instead of by time, and `recover` finds them. The workers of a host
-- have its name before a dot.
update {schema}.job set lease_expires_at = {schema}.clock()
where stage = {leased} and (lease_owner = :owner::text or starts_with(lease_owner, :owner::text || '.'))
  and lease_expires_at > {schema}.clock()
returning id
