-- Deletes operations that ended before the audit's retention, with their sets and steps. One that was stopped
-- is as old as its last step.
delete from bulk_operation
where state <> 'running'
  and coalesce(ended_at, (select max(s.at) from bulk_step s where s.operation = bulk_operation.id), asked_at)
    < clock() - cast(:audit_days * 86400000000 as integer)
returning id;

delete from bulk_chunk where operation not in (select id from bulk_operation);

delete from bulk_step where operation not in (select id from bulk_operation)
