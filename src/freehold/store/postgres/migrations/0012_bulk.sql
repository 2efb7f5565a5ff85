-- Bulk operations: one verb on the jobs that matched a filter when it was asked. The set is stored, in
-- chunks; workers carry out one chunk in a transaction, in order.
create sequence {schema}.bulk_operation_id;
create table {schema}.bulk_operation (
    id       bigint primary key default nextval('{schema}.bulk_operation_id'),
    asked_at timestamptz not null,
    by       text not null,
    via      text not null,
    reason   text,
    verb     text not null,
    changes  json,                          -- of `amend`
    filter   json not null,
    jobs     integer not null,
    chunks   integer not null,
    preview  json not null,                 -- counts by cause, as they were when it was asked
    state    text not null check (state in ('running', 'stopped', 'done')),
    ended_at timestamptz
);
create index bulk_running on {schema}.bulk_operation (id) where state = 'running';

create table {schema}.bulk_chunk (
    operation bigint not null,
    number    integer not null,
    ids       json not null,
    primary key (operation, number)
);

-- A chunk that was carried out, and what became of its jobs. Its key is the guard: a second worker that
-- carries out the same chunk is refused, with all its changes. Step 0 exists from the beginning: a step of an
-- operation that does not run is sent with that number, and so refused too.
create table {schema}.bulk_step (
    operation bigint not null,
    number    integer not null,
    at        timestamptz not null,
    done      integer not null default 0,
    requested integer not null default 0,
    already   integer not null default 0,
    changed   integer not null default 0,
    refused   json,
    constraint bulk_step_once primary key (operation, number)
);

-- A running bulk operation is work, even where no queue may start a job.
alter function {schema}.has_work() rename to jobs_or_schedules_have_work;
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
begin
    return exists (select from {schema}.bulk_operation where state = 'running')
        or {schema}.jobs_or_schedules_have_work();
end
$$;
