-- Leases that were taken or renewed after the present: the clock was set back since. They get their length
-- from now on, which is no less than their owner counts on. A lease that is longer than any worker's ends.
update job
set heartbeat_at = clock(),
    lease_expires_at = clock() + case
        when lease_expires_at - coalesce(heartbeat_at, leased_at) <= {longest_lease} * 1000000
        then lease_expires_at - coalesce(heartbeat_at, leased_at) else 0 end
where id in (
    select id from job
    where stage = {leased} and (coalesce(heartbeat_at, leased_at) > clock()
        or lease_expires_at > clock() + {longest_lease} * 1000000)
    order by id limit :limit)
returning id
