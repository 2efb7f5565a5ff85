-- Nodes of a workflow that failed or were canceled are open again: in their queues, or waiting for sources that have
-- not succeeded. Runs under the lock of the flow, with its worklist folded: all counters are counted anew. The members of
-- groups were retried before; a group waits if members of it do.
with again as materialized (
    select n.number, n.job_id, exists (
            select from {schema}.flow_edge e join {schema}.flow_node s on s.flow = e.flow and s.number = e.source
            where e.flow = n.flow and e.target = n.number and s.state is distinct from 'succeeded') as must_wait
    from {schema}.flow_node n
    where n.flow = :flow::bigint and n.state in ('failed', 'canceled') and n.part is null
      and not exists (select from {schema}.job j where j.id = n.job_id)  -- it blocks its lane
),
gone as (
    delete from {schema}.history h using again a
    where h.id = any (array(select job_id from again)) and h.id = a.job_id
    returning h.*, a.must_wait
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
    select a.number, a.must_wait from again a where a.job_id in (select id from gone)
),
counters as materialized (
    select n.number, count(distinct e.source) filter (where
        s.state is null or s.number in (select number from restored)) as still_open,
        count(distinct e.source) filter (where s.state in ('failed', 'canceled')
            and s.number not in (select number from restored)) as bad
    from {schema}.flow_node n
    left join {schema}.flow_edge e on e.flow = n.flow and e.target = n.number
    left join {schema}.flow_node s on s.flow = e.flow and s.number = e.source
    where n.flow = :flow::bigint
    group by n.number
),
noded as (
    update {schema}.flow_node n
    set state = case when r.number is null then n.state end, counted_state = case when r.number is null then n.counted_state end,
        waits = case when n.part is not null and n.state is null then exists (select from {schema}.job j
                where j.waits_for = 'flow/' || n.part and j.waits_for is not null and j.stage = {pending})
                or exists (select from {schema}.flow g where g.id = n.part and g.sealed_at is null)
            when r.number is null then n.waits else r.must_wait end,
        open_sources = c.still_open, bad_sources = c.bad
    from counters c left join restored r on r.number = c.number
    where n.flow = :flow::bigint and n.number = c.number
),
counted as (
    update {schema}.flow f
    set failed = f.failed - (select count(*) from restored r join {schema}.flow_node n
            on n.flow = f.id and n.number = r.number where n.state = 'failed'),
        canceled = f.canceled - (select count(*) from restored r join {schema}.flow_node n
            on n.flow = f.id and n.number = r.number where n.state = 'canceled'),
        state = case when exists (select from restored) then 'open' else f.state end,
        closed_at = case when not exists (select from restored) then f.closed_at end,
        held_key = case when f.closed_at is null or not exists (select from restored) then f.held_key else {free_key} end,
        canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, due = true, change = f.change + 1
    where f.id = :flow::bigint
)
select number from restored
