-- Nodes of a workflow that failed or were canceled are open again: in their queues, or waiting for sources that have
-- not succeeded. Its worklist is folded; `recount_sources` follows.
insert into job (id, created_at, priority, attempt, max_attempts, lost_attempts, stage, timeout_seconds, queue, task,
    target, limit_key, tags, policy, reason, progress, args, meta, waits_for)
select h.id, h.created_at, h.priority, 0, h.max_attempts, 0, case when {must_wait} then {pending} else {ready} end,
    h.timeout_seconds, h.queue, h.task, h.target, h.limit_key, h.tags, h.policy, :reason, h.progress, h.args, h.meta,
    case when {must_wait} then 'flow/' || :flow end
from flow_node n join history h on h.id = n.job_id
where n.flow = :flow and n.state in ('failed', 'canceled')
order by h.id;

insert into event (job_id, at, attempt, kind, state, by, reason)
select h.id, clock(), 0, 'retried_by_hand', case when {must_wait} then 'pending' else 'queued' end, :by, :reason
from flow_node n join history h on h.id = n.job_id
where n.flow = :flow and n.state in ('failed', 'canceled')
order by h.id;

select n.number from flow_node n
where n.flow = :flow and n.state in ('failed', 'canceled') and exists (select 1 from history h where h.id = n.job_id);

update flow
set failed = failed - (select count(*) from flow_node n where n.flow = :flow and n.state = 'failed'
        and exists (select 1 from history h where h.id = n.job_id)),
    canceled = canceled - (select count(*) from flow_node n where n.flow = :flow and n.state = 'canceled'
        and exists (select 1 from history h where h.id = n.job_id)),
    canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, due = 1, change = change + 1
where id = :flow;

update flow_node as n set waits = {must_wait}, counted_state = 'again'
where n.flow = :flow and n.state in ('failed', 'canceled')
    and exists (select 1 from history h where h.id = n.job_id);

delete from history where id in (select n.job_id from flow_node n where n.flow = :flow and n.counted_state = 'again');

update flow_node set state = null, counted_state = null where flow = :flow and counted_state = 'again';

update flow set state = 'open', closed_at = null, held_key = case when closed_at is null then held_key else {free_key} end
where id = :flow and exists (select 1 from flow_node where flow = :flow and state is null)
