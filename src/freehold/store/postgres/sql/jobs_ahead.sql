-- Ready jobs that would be claimed before this one, up to a bound.
select count(*) from (
    select from {schema}.job
    where {ready_in_queue}
      and (queue, (-priority), id) < (:queue::text, -(:priority::smallint), :id::bigint)
    order by queue, (-priority), id
    limit :bound::integer) x
