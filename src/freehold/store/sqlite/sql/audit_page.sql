with examined as materialized (
    select * from audit where id < :before order by id desc limit :window
)
{page_of_audit}
