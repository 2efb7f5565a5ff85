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
