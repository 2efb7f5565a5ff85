-- Leases that were taken or renewed after the present: the clock was set back since. They get their length
-- from now on, which is no less than their owner counts on. A lease that is longer than any worker's ends.
update {schema}.job j
set heartbeat_at = t.now,
    lease_expires_at = t.now + case
        when isfinite(j.lease_expires_at) and isfinite(coalesce(j.heartbeat_at, j.leased_at))
            and j.lease_expires_at <= coalesce(j.heartbeat_at, j.leased_at) + interval '{longest_lease} s'
        then j.lease_expires_at - coalesce(j.heartbeat_at, j.leased_at)
        else interval '0' end
from (select {schema}.clock() as now) t
where j.id = any (array(
    select l.id from {schema}.job l
    where l.stage = {leased} and (
        coalesce(l.heartbeat_at, l.leased_at) > (select {schema}.clock())
        or l.lease_expires_at > (select {schema}.clock()) + interval '{longest_lease} s')
    order by l.id
    limit :limit::integer
    for update skip locked))
returning j.id
