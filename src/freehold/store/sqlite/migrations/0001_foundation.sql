-- The live table, the history beside it, and what they need. Means the same as PostgreSQL's.
-- Times are microseconds since 1970 in UTC.

-- autoincrement: the id of a job that has left must never be given to another.
create table job (
    id               integer primary key autoincrement,
    created_at       integer not null,
    run_at           integer,                   -- null: at once
    leased_at        integer,
    lease_expires_at integer,
    heartbeat_at     integer,                   -- null: not renewed since leased_at
    started_at       integer,                   -- null: assigned, not seen to run
    lease_token      integer,
    timeout_seconds  real,
    priority         integer not null,
    attempt          integer not null default 0,
    max_attempts     integer not null,
    lost             integer not null default 0,
    stage            text not null,
    request          text,                      -- c cancel, p pause: asked of the owner
    queue            text not null,
    task             text not null,
    lease_owner      text,
    target           text,
    limit_key        text,
    unique_key       text,
    tags             text,
    policy           text,
    request_by       text,
    request_reason   text,
    reason           text,
    progress         text,                      -- the latest that a handler told
    args             text not null,

    constraint job_stage check (stage in ('n','w','r','R','f','u','h','b','p','q','x','l','t')),
    -- A leased row has owner, token and expiry; no other row has any of them.
    constraint job_lease check (
        (stage = 'h') = (lease_owner is not null)
        and (stage = 'h') = (lease_token is not null)
        and (stage = 'h') = (lease_expires_at is not null)
        and (stage = 'h') = (leased_at is not null)
        and (stage = 'h' or (heartbeat_at is null and started_at is null))),
    constraint job_request check (request is null or (stage = 'h' and request in ('c','p'))),
    constraint job_lane check (target is not null or stage not in ('R','f','b','q','x','t')),
    constraint job_attempts check (attempt >= 0 and max_attempts >= 1 and lost >= 0)
);
create index job_claim on job (queue, -priority, id) where stage in ('r','R');
create index job_lane on job (target, id) where target is not null and stage in ('r','f','q');
create unique index job_holder on job (target)
    where target is not null and stage in ('R','u','h','b','p','x','l','t');
create index job_expiry on job (queue, lease_expires_at) where stage = 'h';
create index job_due on job (run_at) where stage in ('w','b');
create unique index job_unique on job (unique_key) where unique_key is not null and stage <> 'x';
create index job_request on job (lease_owner) where request is not null;
create index job_key on job (limit_key, stage)
    where limit_key is not null and stage in ('r','R','h');
create index job_limited on job (limit_key, -priority, id) where stage = 'l';
create index job_parked on job (task) where stage = 'u';
create index job_attention on job (id) where stage in ('n','p','q','x','u');

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
    lost             integer not null,
    state            text not null check (state in ('succeeded','failed','canceled')),
    queue            text not null,
    task             text not null,
    by               text,
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

create table note (
    job_id integer not null,
    token  integer not null,
    at     integer not null,
    number integer not null,
    line   text not null,
    primary key (job_id, token, number)
) without rowid;
create index note_at on note (at);

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

create table spent (
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
