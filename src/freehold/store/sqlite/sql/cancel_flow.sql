-- From now on no member is added, no node is released, and a sweep cancels the live members.
update flow
set canceled_at = clock(), canceled_by = :by, cancel_reason = :reason, reached = 0, due = 1, change = change + 1
where id = :flow and canceled_at is null and closed_at is null
returning id
