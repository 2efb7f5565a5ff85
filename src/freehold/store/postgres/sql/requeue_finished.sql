-- Finished jobs are queued again with their ids and arguments, in their old positions in their lanes.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        id bigint, seen_state text, stage "char", event text, fresh_attempts boolean, waits_for text)
),
locked as materialized (
    select h.id from {schema}.history h
    where h.id = any (array(select id from given))
    order by h.id for update
),
gone as (
    delete from {schema}.history h using given g
    where h.id = any (array(select id from locked)) and g.id = h.id and h.state = g.seen_state
    returning h.*, g.stage, g.event, g.fresh_attempts, g.waits_for
),
back as (
    insert into {schema}.job (id, created_at, priority, attempt, max_attempts, lost_attempts, stage,
        timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, reason, progress,
        args, meta, waits_for)
    select id, created_at, priority, case when fresh_attempts then 0 else attempt end,
        max_attempts, case when fresh_attempts then 0 else lost_attempts end,
        stage, timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy,
        :reason::text, progress, args, meta, waits_for
    from gone order by id
    returning id, attempt
),
ended as (
    -- Failures and cancels have left an event; a success is recorded only by the row that goes now.
    insert into {schema}.event (job_id, at, leased_at, started_at, token, attempt, kind, state, by)
    select id, finished_at, leased_at, started_at, token, attempt, state, state, finished_by
    from gone where state = 'succeeded' order by id
    returning 1
),
counted as (
    -- A member is open again.
    insert into {schema}.flow_end (flow, node, succeeded, failed, canceled)
    select flow, node, -count(*) filter (where state = 'succeeded'), -count(*) filter (where state = 'failed'),
        -count(*) filter (where state = 'canceled')
    from (select {flow_of} as flow, {node_of} as node, state from gone where policy is not null) member
    where flow is not null
    group by flow, node
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select b.id, {schema}.clock(), b.attempt, g.event, 'queued', :by::text, :reason::text
    from back b join given g on g.id = b.id
    where (select count(*) from ended) >= 0  -- reads `ended`, so that its event comes first
    order by b.id
)
select id, true from back
