with examined as materialized (
    select * from history where state <> 'succeeded' and id < :before
    order by id desc limit :window
)
{page_of_history}
