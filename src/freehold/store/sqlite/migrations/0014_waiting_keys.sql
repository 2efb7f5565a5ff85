-- Keys that a job holds until a worker takes it: unique until the start, debounce, throttle. A leased row is
-- not in the index, so that the next job of the key can wait beside it; a job that a worker gives back loses
-- its key (sql/transition.sql), so that it never meets the newer one.
alter table job add column waiting_key text;
create unique index job_waiting on job (waiting_key) where waiting_key is not null and stage <> {leased};

-- When the next job of a throttle may become due. Retention deletes windows that have ended.
create table throttle (
    key     text primary key,
    next_at integer not null
) without rowid;
create index throttle_end on throttle (next_at);

drop view jobs;
create view jobs as
    select j.id, case when j.stage = {leased} and j.started_at is not null then 'running'
        else s.column3 end as state, s.column1 as stage, j.queue, j.task, j.priority, j.target,
        j.attempt, j.max_attempts, j.lost_attempts, j.created_at, j.run_at, j.lease_owner,
        j.lease_token, j.lease_expires_at, j.heartbeat_at, j.started_at, j.stop_request,
        j.stop_requested_by, j.stop_request_reason, j.reason, j.limit_key, j.unique_key,
        j.timeout_seconds, j.tags, j.policy, j.progress, j.args, j.meta, j.waiting_key
    from job j join (values {stages}) s on s.column2 = j.stage;
