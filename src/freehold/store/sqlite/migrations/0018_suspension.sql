-- What a suspended job waits for: sleep/NAME. It waits for its run_at like a delayed job, in the same stages and
-- index.
alter table job add column waits_for text;
create index job_suspended on job (waits_for) where waits_for is not null and stage in ({scheduled}, {backoff});

drop view jobs;
create view jobs as
    select j.id, case when j.stage = {leased} and j.started_at is not null then 'running'
        else s.column3 end as state, s.column1 as stage, j.queue, j.task, j.priority, j.target,
        j.attempt, j.max_attempts, j.lost_attempts, j.created_at, j.run_at, j.lease_owner,
        j.lease_token, j.lease_expires_at, j.heartbeat_at, j.started_at, j.stop_request,
        j.stop_requested_by, j.stop_request_reason, j.reason, j.limit_key, j.unique_key,
        j.timeout_seconds, j.tags, j.policy, j.progress, j.args, j.meta, j.waiting_key, j.start_by,
        j.waits_for
    from job j join (values {stages}) s on s.column2 = j.stage;
