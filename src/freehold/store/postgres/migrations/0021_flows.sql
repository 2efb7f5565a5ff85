-- Flows: batches, gathers, workflows and groups. A member names its flow in its policy; see docs/decisions/0046.
-- An end of a member adds a row to `flow_end` in its own transaction, and a fold adds these up afterwards.
create sequence {schema}.flow_id;
create table {schema}.flow (
    id            bigint primary key,
    kind          text not null check (kind in ('batch', 'gather', 'workflow', 'group')),
    name          text not null,
    key           text,
    held_key      text,                      -- null once it has closed
    state         text not null default 'open' check (state in ('open', 'succeeded', 'failed', 'canceled')),
    total         bigint not null default 0,
    succeeded     bigint not null default 0,
    failed        bigint not null default 0,
    canceled      bigint not null default 0,
    created_at    timestamptz not null,
    created_by    text,
    sealed_at     timestamptz,               -- null: a producer may still add members
    closed_at     timestamptz,
    canceled_at   timestamptz,
    canceled_by   text,
    cancel_reason text,
    parent_job    bigint,                    -- of a gather: the job that waits for it
    parent        bigint,                    -- of a group: its workflow
    node          integer,                   -- of a group: its node there
    counted_state          text,                      -- of a group: the state that its workflow has counted
    due           boolean not null default false, -- there is something to act upon
    change        bigint not null default 0, -- guards the reset of `due`
    reached       bigint not null default 0  -- members up to this id are canceled, of a canceled flow
) with (fillfactor = 50, vacuum_truncate = off);
-- With some free space, as `job`: a plan made for an empty file reads all of it.
insert into {schema}.flow (id, kind, name, created_at)
    select -i, 'batch', repeat('.', 1900), now() from generate_series(1, 500) i;
delete from {schema}.flow;
create unique index flow_held_key on {schema}.flow (held_key) where held_key is not null;
-- By `due` first: a plan that reads the primary key would read all flows.
create index flow_due on {schema}.flow (due, id) where due;
create index flow_closed on {schema}.flow (closed_at) where closed_at is not null;
create index flow_parent_job on {schema}.flow (parent_job) where parent_job is not null and closed_at is null;
create index flow_parent on {schema}.flow (parent) where parent is not null;

-- Where the ids of members are; ids of other jobs can be between them.
create table {schema}.flow_range (
    flow  bigint not null,
    first bigint not null,
    last  bigint not null,
    primary key (flow, first)
);

-- Jobs that are stored when their flow closes, each once.
create table {schema}.flow_callback (
    flow   bigint not null,
    moment text not null check (moment in ('success', 'failure', 'end')),
    job    json not null,
    job_id bigint,
    primary key (flow, moment)
);

create table {schema}.flow_node (
    flow         bigint not null,
    number       integer not null,
    name         text not null,
    job_id       bigint,                     -- null: a group
    part         bigint,                     -- of a group: its flow
    on_failure   text not null check (on_failure in ('cancel', 'hold', 'run')),
    state        text,                       -- null: it has not ended
    counted_state         text,                       -- the state that its followers have counted
    open_sources integer not null default 0,
    bad_sources  integer not null default 0, -- failed or canceled
    waits        boolean not null,           -- neither released nor ended
    result       json,
    primary key (flow, number)
) with (fillfactor = 70, vacuum_truncate = off);
create unique index flow_node_name on {schema}.flow_node (flow, name);
create index flow_node_uncounted on {schema}.flow_node (flow) where state is distinct from counted_state;
create index flow_node_due on {schema}.flow_node (flow, number) where waits
    and ((open_sources = 0 and (bad_sources = 0 or on_failure = 'run')) or (bad_sources > 0 and on_failure = 'cancel'));

create table {schema}.flow_edge (
    flow      bigint not null,
    source    integer not null,
    target    integer not null,
    parameter text not null default '',      -- of the target, that gets the result of the source; '': none
    primary key (flow, source, target, parameter)
);
create index flow_edge_target on {schema}.flow_edge (flow, target);

-- The worklist: differences that are not counted yet.
create table {schema}.flow_end (
    flow      bigint not null,
    node      integer,
    succeeded integer not null default 0,
    failed    integer not null default 0,
    canceled  integer not null default 0,
    cancels   boolean not null default false -- the flow is to be canceled
) with (vacuum_truncate = off);
create index flow_end_flow on {schema}.flow_end (flow);

-- What is not folded, or not acted upon, is work, even where no queue may start a job.
alter function {schema}.has_work() rename to all_but_flows_have_work;
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
begin
    return (select e.flow from {schema}.flow_end e order by e.flow limit 1) is not null
        or (select f.id from {schema}.flow f where f.due order by f.due, f.id limit 1) is not null
        or {schema}.all_but_flows_have_work();
end
$$;
