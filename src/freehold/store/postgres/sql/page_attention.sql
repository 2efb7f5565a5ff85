-- Jobs that wait for a person.
with looked_at as materialized (
    select * from {schema}.job where stage in ('n','p','q','x') and id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_jobs}
