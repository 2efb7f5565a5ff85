with examined as materialized (
    select * from audit where kind = :kind and subject = :subject and id < :before
    order by id desc limit :window
)
{page_of_audit}
