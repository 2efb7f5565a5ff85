-- Who is at work: a row for each worker, written by itself. Nothing is decided by it; leases
-- alone say who owns a job.
create table {schema}.worker (
    owner       text primary key,
    manager     text,                       -- null: started by hand
    host        text not null,
    pid         integer not null,
    started_at  timestamptz not null,
    seen_at     timestamptz not null,
    expires_at  timestamptz not null,
    concurrency integer not null,
    running     integer not null,           -- slots in use
    waiting     integer not null,           -- claimed ahead, not started
    finished    bigint not null,            -- attempts that ended here, since it started
    state       text not null check (state in ('working','draining','stuck')),
    version     text not null,
    queues      json not null,
    tasks       json not null
) with (fillfactor = 50);                   -- beats update in place: no index has what they change
