-- Ready jobs of a queue in the order of the claim, without a lock.
select id, stage::text, target, null, null, null from {schema}.job
where queue = :queue::text and {is_ready}
order by queue, (-priority), id
limit :limit::integer offset :offset::integer
