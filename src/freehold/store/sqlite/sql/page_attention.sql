with examined as materialized (
    select * from job where stage in ({pending}, {paused}, {paused_follower}, {failed}) and id < :before
    order by id desc limit :window
)
{page_of_jobs}
