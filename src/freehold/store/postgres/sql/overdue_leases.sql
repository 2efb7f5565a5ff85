-- Leases that expired long ago, up to a bound. No more are leased than the fleet has slots.
select count(*) from (
    select from {schema}.job
    where stage = {leased}
      and lease_expires_at < (select {schema}.clock()) - make_interval(secs => :seconds::double precision)
    limit :bound::integer) x
