-- Ready jobs that would be claimed before this one, up to a bound.
select count(*) from (
    select from {schema}.job
    where queue = :queue::text and stage in ('r','R')
      and ((-priority), id) < (-(:priority::smallint), :id::bigint)
    limit :bound::integer) x
