-- Bulk operations: one verb on the jobs that matched a filter when it was asked. The set is stored, in
-- chunks; workers carry out one chunk in a transaction, in order.
create table bulk_operation (
    id       integer primary key autoincrement,
    asked_at integer not null,
    by       text not null,
    via      text not null,
    reason   text,
    verb     text not null,
    changes  text,                          -- of `amend`
    filter   text not null,
    jobs     integer not null,
    chunks   integer not null,
    preview  text not null,                 -- counts by cause, as they were when it was asked
    state    text not null check (state in ('running', 'stopped', 'done')),
    ended_at integer
);
create index bulk_running on bulk_operation (id) where state = 'running';

create table bulk_chunk (
    operation integer not null,
    number    integer not null,
    ids       text not null,
    primary key (operation, number)
) without rowid;

-- A chunk that was carried out, and what became of its jobs. Its key is the guard: a second worker that
-- carries out the same chunk is refused, with all its changes. Step 0 exists from the beginning: a step of an
-- operation that does not run is sent with that number, and so refused too.
create table bulk_step (
    operation integer not null,
    number    integer not null,
    at        integer not null,
    done      integer not null default 0,
    requested integer not null default 0,
    already   integer not null default 0,
    changed   integer not null default 0,
    refused   text,
    primary key (operation, number)
) without rowid;
