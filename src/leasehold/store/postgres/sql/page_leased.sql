-- Jobs in somebody's hands: no more than there are slots in the fleet.
with looked_at as (
    select * from {schema}.job where stage = 'h' and id < :before::bigint
    order by id desc limit :window::integer
)
{page_of_jobs}
