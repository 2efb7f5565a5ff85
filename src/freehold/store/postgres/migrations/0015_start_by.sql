-- The time by which a job must have started; a sweep cancels it afterwards. Cleared once a handler has started
-- (sql/transition.sql), so that only jobs that were never tried are in the index: a leased row has an attempt.
-- Plain rows are not in it.
alter table {schema}.job add column start_by timestamptz;
create index job_start_by on {schema}.job (start_by) where start_by is not null and attempt = 0;

create or replace view {schema}.jobs as
    select j.id, w.state, w.stage, j.queue, j.task, j.priority, j.target, j.attempt, j.max_attempts,
        j.lost_attempts, j.created_at, j.run_at, j.lease_owner, j.lease_token, j.lease_expires_at,
        j.heartbeat_at, j.started_at, j.stop_request, j.stop_requested_by, j.stop_request_reason,
        j.reason, j.limit_key, j.unique_key, j.timeout_seconds, j.tags, j.policy, j.progress, j.args,
        j.meta, j.waiting_key, j.start_by
    from {schema}.job j
    cross join lateral (
        select s.stage, case when j.stage = {leased} and j.started_at is not null
            then 'running' else s.state end as state
        from (values {stages}) s (stage, letter, state)
        where s.letter::"char" = j.stage) w;

-- A job that is too late is work, even where no queue may start a job.
alter function {schema}.has_work() rename to jobs_schedules_or_bulk_have_work;
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
begin
    return exists (select from {schema}.job
                   where start_by is not null and attempt = 0 and start_by <= {schema}.clock())
        or {schema}.jobs_schedules_or_bulk_have_work();
end
$$;
