with examined as materialized (
    select *, null as error_type from job where stage = {leased} and id < :before order by id desc limit :window
)
{page_of_jobs}
