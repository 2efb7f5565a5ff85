-- Leases that expired long ago, up to a bound. No more are leased than the fleet has slots.
select count(*) from (
    select 1 from job
    where stage = {leased} and lease_expires_at < clock() - :seconds * 1000000
    limit :bound)
