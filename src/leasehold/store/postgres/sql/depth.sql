-- What can be claimed now, up to a bound.
select count(*) from (
    select from {schema}.job
    where queue = :queue::text and stage in ('r','R')
    limit :bound::integer) ready
