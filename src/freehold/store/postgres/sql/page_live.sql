-- All live jobs by id: most of them wait in the queue.
with examined as materialized (
    select *, null::text as error_type from {schema}.job where id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_jobs}
