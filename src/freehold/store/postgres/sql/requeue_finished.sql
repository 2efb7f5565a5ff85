-- A finished job is queued again with its id and arguments, in its old position in its lane.
with gone as (
    delete from {schema}.history where id = :id::bigint and state = :seen_state::text returning *
),
back as (
    insert into {schema}.job (id, created_at, priority, attempt, max_attempts, lost_attempts, stage,
        timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, reason, progress,
        args, meta)
    select id, created_at, priority, case when :fresh_attempts::boolean then 0 else attempt end,
        max_attempts, case when :fresh_attempts::boolean then 0 else lost_attempts end,
        :stage::"char", timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy,
        :reason::text, progress, args, meta
    from gone
    returning id, attempt
),
ended as (
    -- Failures and cancels have left an event; a success is recorded only by the row that goes now.
    insert into {schema}.event (job_id, at, leased_at, started_at, token, attempt, kind, state, by)
    select id, finished_at, leased_at, started_at, token, attempt, state, state, finished_by
    from gone where state = 'succeeded'
    returning 1
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, :event::text, 'queued', :by::text, :reason::text
    from back
    where (select count(*) from ended) >= 0  -- reads `ended`, so that its event comes first
)
select id, true from back
