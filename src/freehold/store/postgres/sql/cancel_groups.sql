-- The groups of a canceled workflow are canceled with it.
update {schema}.flow
set canceled_at = {schema}.clock(), canceled_by = :by::text, cancel_reason = :reason::text, reached = 0, due = true,
    change = change + 1
where parent = :flow::bigint and parent is not null and canceled_at is null and closed_at is null
returning id
