-- Schedules. `next_at` is when a sweep must look at one: at its next tick, at most a day ahead; null: paused
-- or ended. Ticks up to `counted_to` have made their job, were skipped or missed. `edit` counts the changes by
-- operators and by code: a sweep writes only if it and `next_at` are as the sweep read them.
create table schedule (
    name          text primary key,
    definition    text not null,
    created_at    integer not null,
    anchor_at     integer not null,
    counted_to    integer not null,
    next_at       integer,
    edit          integer not null default 0,
    last_at       integer,
    last_job      integer,
    fired         integer not null default 0,
    missed        integer not null default 0,
    skipped       integer not null default 0,
    skipped_at    integer,
    skipped_for   integer,
    problem       text,
    declared      text,
    declared_by   text,
    undeclared_at integer,
    edited_at     integer,
    edited_by     text,
    paused_at     integer,
    paused_by     text,
    pause_reason  text,
    paused_until  integer
) without rowid;
create index schedule_due on schedule (next_at) where next_at is not null;
create index schedule_undeclared on schedule (undeclared_at) where undeclared_at is not null;
