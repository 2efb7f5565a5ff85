-- Members of a canceled flow may run again. Until one does it counts as failed: the caller can die after this.
update flow
set canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, change = change + 1,
    state = case when state = 'canceled' then 'failed' else state end
where id = :flow and canceled_at is not null
returning id
