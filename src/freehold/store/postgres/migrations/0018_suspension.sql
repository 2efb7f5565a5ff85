-- What a suspended job waits for: sleep/NAME. It waits for its run_at like a delayed job, in the same stages and
-- index; plain rows have null here, and are not in the index below.
alter table {schema}.job add column waits_for text;
create index job_suspended on {schema}.job (waits_for)
    where waits_for is not null and stage in ({scheduled}, {backoff});

create or replace view {schema}.jobs as
    select j.id, w.state, w.stage, j.queue, j.task, j.priority, j.target, j.attempt, j.max_attempts,
        j.lost_attempts, j.created_at, j.run_at, j.lease_owner, j.lease_token, j.lease_expires_at,
        j.heartbeat_at, j.started_at, j.stop_request, j.stop_requested_by, j.stop_request_reason,
        j.reason, j.limit_key, j.unique_key, j.timeout_seconds, j.tags, j.policy, j.progress, j.args,
        j.meta, j.waiting_key, j.start_by, j.waits_for
    from {schema}.job j
    cross join lateral (
        select s.stage, case when j.stage = {leased} and j.started_at is not null
            then 'running' else s.state end as state
        from (values {stages}) s (stage, letter, state)
        where s.letter::"char" = j.stage) w;
