-- A finished job is queued again with its id and arguments, in its old position in its lane.
insert into job (id, created_at, priority, attempt, max_attempts, lost_attempts, stage, timeout_seconds,
    queue, task, target, limit_key, unique_key, tags, policy, reason, progress, args, meta,
    waits_for)
select id, created_at, priority, case when :fresh_attempts then 0 else attempt end, max_attempts,
    case when :fresh_attempts then 0 else lost_attempts end, :stage, timeout_seconds, queue, task, target,
    limit_key, unique_key, tags, policy, :reason, progress, args, meta, :waits_for
from history where id = :id and state = :seen_state;

-- Failures and cancels have left an event; a success is recorded only by the row that goes now.
insert into event (job_id, at, leased_at, started_at, token, attempt, kind, state, by)
select id, finished_at, leased_at, started_at, token, attempt, state, state, finished_by
from history where id = :id and state = :seen_state and state = 'succeeded';

insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), case when :fresh_attempts then 0 else attempt end, :event, 'queued', :by,
    :reason
from history where id = :id and state = :seen_state;

-- A member is open again.
insert into flow_end (flow, node, succeeded, failed, canceled)
select {flow_of}, {node_of}, -(state = 'succeeded'), -(state = 'failed'), -(state = 'canceled')
from history where id = :id and state = :seen_state and {flow_of} is not null;

delete from history where id = :id and state = :seen_state
returning id, 1
