-- The groups of a canceled workflow are canceled with it.
update flow
set canceled_at = clock(), canceled_by = :by, cancel_reason = :reason, reached = 0, due = 1, change = change + 1
where parent = :flow and parent is not null and canceled_at is null and closed_at is null
returning id
