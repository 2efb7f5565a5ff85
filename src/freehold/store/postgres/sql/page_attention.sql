-- Jobs that wait for a person.
with examined as materialized (
    select * from {schema}.job where stage in ({pending}, {paused}, {paused_follower}, {failed}) and id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_jobs}
