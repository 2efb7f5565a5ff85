-- Jobs that wait for a person. The error of a failed one is in its last event.
with examined as materialized (
    select j.*, case when :error::text is not null and j.stage = {failed} then (
        select e.error ->> 'type' from {schema}.event e
        where e.job_id = j.id and e.error is not null order by e.id desc limit 1) end as error_type
    from {schema}.job j where j.stage in ({pending}, {paused}, {paused_follower}, {failed}) and j.id < :before::bigint
    order by j.id desc limit :window::integer
)
{page_of_jobs}
