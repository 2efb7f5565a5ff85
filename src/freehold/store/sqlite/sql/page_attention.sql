with looked_at as materialized (
    select * from job where stage in ('n','p','q','x','u') and id < :before
    order by id desc limit :window
)
{page_of_jobs}
