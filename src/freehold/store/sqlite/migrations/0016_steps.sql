-- Steps of durable handlers: what a step has returned, kept until the history of its job goes. `number` is
-- their order within a job.
create table step (
    job_id integer not null,
    name   text not null,
    number integer not null,
    token  integer not null,                -- of the attempt that wrote it
    at     integer not null,
    kind   text not null,                   -- result, sleep, ...
    until  integer,                         -- the end of a wait
    value  text,
    hidden integer not null,                -- the value is secret
    primary key (job_id, name)
) without rowid;
create index step_at on step (at);
