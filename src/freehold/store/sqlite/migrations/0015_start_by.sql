-- The time by which a job must have started; a sweep cancels it afterwards. Cleared once a handler has started
-- (sql/transition.sql), so that only jobs that were never tried are in the index: a leased row has an attempt.
alter table job add column start_by integer;
create index job_start_by on job (start_by) where start_by is not null and attempt = 0;

drop view jobs;
create view jobs as
    select j.id, case when j.stage = {leased} and j.started_at is not null then 'running'
        else s.column3 end as state, s.column1 as stage, j.queue, j.task, j.priority, j.target,
        j.attempt, j.max_attempts, j.lost_attempts, j.created_at, j.run_at, j.lease_owner,
        j.lease_token, j.lease_expires_at, j.heartbeat_at, j.started_at, j.stop_request,
        j.stop_requested_by, j.stop_request_reason, j.reason, j.limit_key, j.unique_key,
        j.timeout_seconds, j.tags, j.policy, j.progress, j.args, j.meta, j.waiting_key, j.start_by
    from job j join (values {stages}) s on s.column2 = j.stage;
