-- All finished jobs by id: most of them succeeded.
with looked_at as materialized (
    select * from {schema}.history where id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_history}
