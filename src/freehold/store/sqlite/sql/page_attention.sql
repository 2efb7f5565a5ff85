with examined as materialized (
    select j.*, case when :error is not null and j.stage = {failed} then (
        select case when json_valid(e.error) then json_extract(e.error, '$.type') end from event e
        where e.job_id = j.id and e.error is not null order by e.id desc limit 1) end as error_type
    from job j where j.stage in ({pending}, {paused}, {paused_follower}, {failed}) and j.id < :before
    order by j.id desc limit :window
)
{page_of_jobs}
