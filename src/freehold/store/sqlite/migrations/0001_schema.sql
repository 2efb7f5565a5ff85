-- The whole schema, with the meaning of PostgreSQL's. Times are microseconds since 1970 in UTC.
--
-- {ready}, {leased} and the other names in braces stand for one byte each; the list is in
-- store/stages.sql, and the view `jobs` shows the words.

-- autoincrement: the id of a job that has finished must never be given to another.
create table job (
    id                  integer primary key autoincrement,
    created_at          integer not null,
    run_at              integer,                -- null: at once
    leased_at           integer,
    lease_expires_at    integer,
    heartbeat_at        integer,                -- null: not renewed since leased_at
    started_at          integer,                -- null: assigned, not yet reported as running
    lease_token         integer,
    timeout_seconds     real,
    priority            integer not null,
    attempt             integer not null default 0,
    max_attempts        integer not null,
    lost_attempts       integer not null default 0,
    stage               text not null,
    stop_request        text,                   -- cancel or pause, requested of the owner
    queue               text not null,
    task                text not null,
    lease_owner         text,
    target              text,
    limit_key           text,
    unique_key          text,
    tags                text,
    policy              text,
    stop_requested_by   text,
    stop_request_reason text,
    reason              text,
    progress            text,                   -- the latest that the handler reported
    args                text not null,

    constraint job_stage check (stage in ({pending}, {scheduled}, {ready}, {lane_head}, {follower},
        {parked}, {leased}, {backoff}, {paused}, {paused_follower}, {failed}, {limited}, {lane_paused})),
    -- A leased row has owner, token and expiry; no other row has any of them.
    constraint job_lease check (
        (stage = {leased}) = (lease_owner is not null)
        and (stage = {leased}) = (lease_token is not null)
        and (stage = {leased}) = (lease_expires_at is not null)
        and (stage = {leased}) = (leased_at is not null)
        and (stage = {leased} or (heartbeat_at is null and started_at is null))),
    constraint job_stop_request check (
        stop_request is null or (stage = {leased} and stop_request in ('cancel','pause'))),
    constraint job_lane check (target is not null
        or stage not in ({lane_head}, {follower}, {backoff}, {paused_follower}, {failed}, {lane_paused})),
    constraint job_attempts check (attempt >= 0 and max_attempts >= 1 and lost_attempts >= 0)
);
create index job_claim on job (queue, -priority, id) where stage in ({ready}, {lane_head});
create index job_lane on job (target, id)
    where target is not null and stage in ({ready}, {follower}, {paused_follower});
create unique index job_lane_holder on job (target)
    where target is not null and stage in ({lane_head}, {parked}, {leased}, {backoff}, {paused},
        {failed}, {limited}, {lane_paused});
create index job_expiry on job (queue, lease_expires_at) where stage = {leased};
create index job_due on job (run_at) where stage in ({scheduled}, {backoff});
create unique index job_unique on job (unique_key)
    where unique_key is not null and stage <> {failed};
create index job_stop_request on job (lease_owner) where stop_request is not null;
create index job_limit_key on job (limit_key, stage)
    where limit_key is not null and stage in ({ready}, {lane_head}, {leased});
create index job_limited on job (limit_key, -priority, id) where stage = {limited};
create index job_parked on job (task) where stage = {parked};
create index job_attention on job (id)
    where stage in ({pending}, {paused}, {paused_follower}, {failed});

-- Live jobs with words in the place of the stage's byte, for people.
create view jobs as
    select j.id, case when j.stage = {leased} and j.started_at is not null then 'running'
        else s.column3 end as state, s.column1 as stage, j.queue, j.task, j.priority, j.target,
        j.attempt, j.max_attempts, j.lost_attempts, j.created_at, j.run_at, j.lease_owner,
        j.lease_token, j.lease_expires_at, j.heartbeat_at, j.started_at, j.stop_request,
        j.stop_requested_by, j.stop_request_reason, j.reason, j.limit_key, j.unique_key,
        j.timeout_seconds, j.tags, j.policy, j.progress, j.args
    from job j join (values {stages}) s on s.column2 = j.stage;

create table history (
    id               integer primary key,
    created_at       integer not null,
    run_at           integer,
    leased_at        integer,
    started_at       integer,
    finished_at      integer not null,
    token            integer,
    timeout_seconds  real,
    priority         integer not null,
    attempt          integer not null,
    max_attempts     integer not null,
    lost_attempts    integer not null,
    state            text not null check (state in ('succeeded','failed','canceled')),
    queue            text not null,
    task             text not null,
    finished_by      text,
    target           text,
    limit_key        text,
    unique_key       text,
    tags             text,
    policy           text,
    reason           text,
    error            text,
    result           text,
    progress         text,
    args             text not null
);
create index history_finished on history (finished_at);
create index history_unsuccessful on history (id) where state <> 'succeeded';

create table event (
    id         integer primary key autoincrement,
    job_id     integer not null,
    at         integer not null,
    leased_at  integer,
    started_at integer,
    due_at     integer,
    token      integer,
    attempt    integer not null,
    kind       text not null,
    state      text not null,
    by         text,
    reason     text,
    error      text
);
create index event_job on event (job_id, id);
create index event_at on event (at);

create table job_log (
    job_id integer not null,
    token  integer not null,
    at     integer not null,
    number integer not null,
    line   text not null,
    primary key (job_id, token, number)
) without rowid;
create index job_log_at on job_log (at);

create table idempotency (
    key        text primary key,
    job_id     integer not null,
    expires_at integer not null
) without rowid;
create index idempotency_expiry on idempotency (expires_at);

create table queue (
    name         text primary key,
    paused_at    integer,
    paused_by    text,
    pause_reason text,
    paused_until integer,
    weight       real not null default 1 check (weight > 0),
    max_leases   integer check (max_leases >= 0),
    rate_starts  integer check (rate_starts >= 0),
    rate_seconds real check (rate_seconds > 0),
    constraint queue_rate check ((rate_starts is null) = (rate_seconds is null))
) without rowid;

create table key_limit (
    key          text primary key,
    max_leases   integer check (max_leases >= 0),
    rate_starts  integer check (rate_starts >= 0),
    rate_seconds real check (rate_seconds > 0),
    constraint key_limit_rate check ((rate_starts is null) = (rate_seconds is null))
) without rowid;

create table rate_usage (
    name   text not null,
    slot   integer not null,
    starts integer not null,
    primary key (name, slot)
) without rowid;

create table lane (
    target       text primary key,
    paused_at    integer not null,
    paused_by    text not null,
    pause_reason text,
    paused_until integer
) without rowid;

create table counter (
    name  text primary key,
    value integer not null
) without rowid;
insert into counter (name, value) values ('lease_token', 0);

create table worker (
    owner       text primary key,
    manager     text,
    host        text not null,
    pid         integer not null,
    started_at  integer not null,
    seen_at     integer not null,
    expires_at  integer not null,
    concurrency integer not null,
    running     integer not null,
    waiting     integer not null,
    finished    integer not null,
    state       text not null check (state in ('working','draining','stuck')),
    version     text not null,
    queues      text not null,
    tasks       text not null
) without rowid;

-- The directory of tenants, used in the control file only. Each tenant has a file of its own.
create table tenant (
    name       text primary key,
    shard      text not null,
    state      text not null check (state in ('active','paused','moving','degraded')),
    weight     real not null default 1 check (weight > 0),
    max_slots  integer check (max_slots >= 1),
    created_at integer not null,
    note       text,
    moving_to  text,
    moved_from text,
    constraint tenant_moving check ((state = 'moving') = (moving_to is not null))
) without rowid;
