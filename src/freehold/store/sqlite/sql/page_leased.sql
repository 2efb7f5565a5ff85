with looked_at as materialized (
    select * from job where stage = 'h' and id < :before order by id desc limit :window
)
{page_of_jobs}
