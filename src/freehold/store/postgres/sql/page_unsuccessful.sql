-- Failed and canceled jobs, however many succeeded around them.
with examined as materialized (
    select * from {schema}.history where state <> 'succeeded' and id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_history}
