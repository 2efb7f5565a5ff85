-- Deletes operations that ended before the audit's retention, with their sets and steps.
delete from bulk_operation where ended_at < clock() - cast(:audit_days * 86400000000 as integer)
returning id;

delete from bulk_chunk where operation not in (select id from bulk_operation);

delete from bulk_step where operation not in (select id from bulk_operation)
