-- Changes of one job, queue, lane, limit or tenant, newest first.
with examined as materialized (
    select * from {schema}.audit
    where kind = :kind::text and subject = :subject::text and id < :before::bigint
    order by kind, subject, id desc limit :window::integer
)
{page_of_audit}
