-- A group that is retried is not canceled any more. One without members is open until its sources have ended; the row
-- of the worklist lets the fold see that.
insert into flow_end (flow) select id from flow where id = :flow and total = 0;

update flow
set canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, change = change + 1,
    sealed_at = case when total > 0 or not :must_wait then sealed_at end
where id = :flow and (total = 0 or :retried)
returning id
