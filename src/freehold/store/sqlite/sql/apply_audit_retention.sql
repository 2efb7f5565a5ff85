delete from audit where id in (
    select id from audit where at < clock() - cast(:audit_days * 86400000000 as integer)
    order by at limit :limit)
returning 1
