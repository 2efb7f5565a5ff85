-- Changes by operators, newest first.
with examined as materialized (
    select * from {schema}.audit where id < :before::bigint order by id desc limit :window::integer
)
{page_of_audit}
