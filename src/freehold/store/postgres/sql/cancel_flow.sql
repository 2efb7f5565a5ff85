-- From now on no member is added, no node is released, and a sweep cancels the live members.
update {schema}.flow
set canceled_at = {schema}.clock(), canceled_by = :by::text, cancel_reason = :reason::text, reached = 0, due = true,
    change = change + 1
where id = :flow::bigint and canceled_at is null and closed_at is null
returning id
