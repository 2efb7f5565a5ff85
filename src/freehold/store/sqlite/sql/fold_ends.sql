-- Adds the worklist of a flow to its counters. It closes when it is sealed and all its members have ended; a
-- difference that opens a member opens it again.
update flow
set succeeded = succeeded + s.ended_well, failed = failed + s.ended_badly, canceled = canceled + s.ended_canceled,
    change = change + 1,
    canceled_at = case when canceled_at is null and closed_at is null and s.cancels then clock() else canceled_at end,
    cancel_reason = case when canceled_at is null and closed_at is null and s.cancels
        then 'the job that waits for it has ended' else cancel_reason end,
    closed_at = case when {flow_closes} then coalesce(closed_at, clock()) end,
    held_key = case when {flow_closes} then null when closed_at is null then held_key else {free_key} end,
    state = {folded_state},
    -- Also from one end to another: a member that failed was retried and has succeeded since the last fold.
    due = due or s.cancels or {folded_state} <> state
from (select coalesce(sum(succeeded), 0) as ended_well, coalesce(sum(failed), 0) as ended_badly,
        coalesce(sum(canceled), 0) as ended_canceled, coalesce(max(cancels), 0) as cancels
      from flow_end where flow = :flow) s
where id = :flow and exists (select 1 from flow_end where flow = :flow);

update flow_node
set state = case
        when (state is 'succeeded') + e.ended_well > 0 then 'succeeded'
        when (state is 'failed') + e.ended_badly > 0 then 'failed'
        when (state is 'canceled') + e.ended_canceled > 0 then 'canceled' end,
    waits = waits and not (e.ended_well > 0 or e.ended_badly > 0 or e.ended_canceled > 0),
    -- Kept for followers that start when the history is gone.
    result = case when (state is 'succeeded') + e.ended_well > 0
            and exists (select 1 from flow_edge d where d.flow = :flow and d.source = number and d.parameter <> '')
        then (select h.result from history h where h.id = job_id) else result end
from (select node, sum(succeeded) as ended_well, sum(failed) as ended_badly, sum(canceled) as ended_canceled
      from flow_end where flow = :flow and node is not null group by node) e
where flow = :flow and number = e.node;

select :flow, count(*) from flow_end where flow = :flow group by flow;

delete from flow_end where flow = :flow
