-- Members of a canceled flow may run again. Until one does it counts as failed: the caller can die after this. One without
-- members has succeeded, once it is not canceled any more.
update flow
set canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, change = change + 1,
    state = case when state <> 'canceled' then state when total = 0 then 'succeeded' else 'failed' end,
    due = due or state = 'canceled' and total = 0
where id = :flow and canceled_at is not null
returning id
