-- All finished jobs by id: most of them succeeded.
with examined as materialized (
    select * from {schema}.history where id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_history}
