-- Members of a canceled flow may run again.
update {schema}.flow
set canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, change = change + 1
where id = :flow::bigint and canceled_at is not null
returning id
