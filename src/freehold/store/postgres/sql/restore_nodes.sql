-- Nodes of a workflow that failed or were canceled are open again: in their queues, or waiting for sources that have
-- not succeeded. Runs under the lock of the flow, with its worklist folded, and before `recount_sources`. No joins of
-- these sets: a plan of an empty table would compare each node with each.
with again as materialized (
    select n.number, n.job_id, n.state, n.number in (
            select e.target from {schema}.flow_edge e
            join {schema}.flow_node s on s.flow = e.flow and s.number = e.source
            where e.flow = :flow::bigint and s.state is distinct from 'succeeded') as must_wait
    from {schema}.flow_node n
    where n.flow = :flow::bigint and n.state in ('failed', 'canceled') and n.part is null
      and (select j.id from {schema}.job j where j.id = n.job_id) is null  -- else it blocks its lane
),
gone as (
    delete from {schema}.history h where h.id = any (array(select job_id from again))
    returning h.*, h.id in (select job_id from again where must_wait) as must_wait
),
back as (
    insert into {schema}.job (id, created_at, priority, attempt, max_attempts, lost_attempts, stage, timeout_seconds,
        queue, task, target, limit_key, tags, policy, reason, progress, args, meta, waits_for)
    select id, created_at, priority, 0, max_attempts, 0, case when must_wait then {pending} else {ready} end,
        timeout_seconds, queue, task, target, limit_key, tags, policy, :reason::text, progress, args, meta,
        case when must_wait then 'flow/' || :flow::text end
    from gone order by id
    returning id, stage
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), 0, 'retried_by_hand', case when stage = {pending} then 'pending' else 'queued' end,
        :by::text, :reason::text
    from back order by id
),
restored as materialized (
    select number, state from again where (job_id in (select id from gone)) is true
),
noded as (
    update {schema}.flow_node n
    set state = null, counted_state = null, waits = n.job_id in (select job_id from again where must_wait)
    where n.flow = :flow::bigint and n.number = any (array(select number from restored))
),
counted as (
    update {schema}.flow f
    set failed = f.failed - (select count(*) from restored where state = 'failed'),
        canceled = f.canceled - (select count(*) from restored where state = 'canceled'),
        state = case when exists (select from restored) then 'open' else f.state end,
        closed_at = case when not exists (select from restored) then f.closed_at end,
        held_key = case when f.closed_at is null or not exists (select from restored) then f.held_key else {free_key} end,
        canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, due = true, change = f.change + 1
    where f.id = :flow::bigint
)
select number from restored
