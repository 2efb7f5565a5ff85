-- A finished job comes back with its id and arguments, ready, at its place in its lane.
with gone as (
    delete from {schema}.history where id = :id::bigint and state = :seen_state::text returning *
),
back as (
    insert into {schema}.job (id, created_at, priority, attempt, max_attempts, lost, stage,
        timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, reason, progress,
        args)
    select id, created_at, priority, case when :fresh_attempts::boolean then 0 else attempt end,
        max_attempts, case when :fresh_attempts::boolean then 0 else lost end,
        :stage::"char", timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy,
        :reason::text, progress, args
    from gone
    returning id, attempt
),
ended as (
    -- Failures and cancels have left an event; a success was told by the row that goes now.
    insert into {schema}.event (job_id, at, leased_at, started_at, token, attempt, kind, state, by)
    select id, finished_at, leased_at, started_at, token, attempt, state, state, by
    from gone where state = 'succeeded'
    returning 1
),
told as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, :event::text, 'queued', :by::text, :reason::text
    from back
    where (select count(*) from ended) >= 0  -- reads it, so that it is told first
)
select id, true from back
