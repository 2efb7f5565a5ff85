-- Steps of durable handlers: what a step has returned, kept until the history of its job goes. `number` is
-- their order within a job. Plain jobs have no row here.
create table {schema}.step (
    job_id bigint not null,
    name   text not null,
    number integer not null,
    token  bigint not null,                 -- of the attempt that wrote it
    at     timestamptz not null,
    kind   text not null,                   -- result, sleep, ...
    until  timestamptz,                     -- the end of a wait
    value  json,
    hidden boolean not null,                -- the value is secret
    primary key (job_id, name)
) with (vacuum_truncate = off);
-- With some free space, as `job`: a plan made for an empty file reads all of it. The rows are never old, because
-- retention would read them until the first vacuum.
insert into {schema}.step (job_id, name, number, token, at, kind, value, hidden)
    select -i, '', 0, 0, 'infinity', '', to_json(repeat('.', 1900)), false from generate_series(1, 500) i;
delete from {schema}.step;
create index step_at on {schema}.step (at);
