-- Flows: batches, gathers, workflows and groups. A member names its flow in its policy; see docs/decisions/0046.
-- An end of a member adds a row to `flow_end` in its own transaction, and a fold adds these up afterwards.
create table flow (
    id            integer primary key,
    kind          text not null check (kind in ('batch', 'gather', 'workflow', 'group')),
    name          text not null,
    key           text,
    held_key      text,                      -- null once it has closed
    state         text not null default 'open' check (state in ('open', 'succeeded', 'failed', 'canceled')),
    total         integer not null default 0,
    succeeded     integer not null default 0,
    failed        integer not null default 0,
    canceled      integer not null default 0,
    created_at    integer not null,
    created_by    text,
    sealed_at     integer,                   -- null: a producer may still add members
    closed_at     integer,
    canceled_at   integer,
    canceled_by   text,
    cancel_reason text,
    parent_job    integer,                   -- of a gather: the job that waits for it
    parent        integer,                   -- of a group: its workflow
    node          integer,                   -- of a group: its node there
    counted_state          text,                      -- of a group: the state that its workflow has counted
    due           integer not null default 0, -- there is something to act upon
    change        integer not null default 0, -- guards the reset of `due`
    reached       integer not null default 0 -- members up to this id are canceled, of a canceled flow
);
insert into counter (name, value) values ('flow_id', 0);
create unique index flow_held_key on flow (held_key) where held_key is not null;
create index flow_due on flow (id) where due;
create index flow_closed on flow (closed_at) where closed_at is not null;
create index flow_parent_job on flow (parent_job) where parent_job is not null and closed_at is null;
create index flow_parent on flow (parent) where parent is not null;

-- Where the ids of members are; ids of other jobs can be between them.
create table flow_range (
    flow  integer not null,
    first integer not null,
    last  integer not null,
    primary key (flow, first)
) without rowid;

-- Jobs that are stored when their flow closes, each once.
create table flow_callback (
    flow   integer not null,
    moment text not null check (moment in ('success', 'failure', 'end')),
    job    text not null,
    job_id integer,
    primary key (flow, moment)
) without rowid;

create table flow_node (
    flow         integer not null,
    number       integer not null,
    name         text not null,
    job_id       integer,                    -- null: a group
    part         integer,                    -- of a group: its flow
    on_failure   text not null check (on_failure in ('cancel', 'hold', 'run')),
    state        text,                       -- null: it has not ended
    counted_state         text,                       -- the state that its followers have counted
    open_sources integer not null default 0,
    bad_sources  integer not null default 0, -- failed or canceled
    waits        integer not null,           -- neither released nor ended
    result       text,
    primary key (flow, number)
) without rowid;
create unique index flow_node_name on flow_node (flow, name);
create index flow_node_uncounted on flow_node (flow) where state is not counted_state;
create index flow_node_due on flow_node (flow, number) where waits
    and ((open_sources = 0 and (bad_sources = 0 or on_failure = 'run')) or (bad_sources > 0 and on_failure = 'cancel'));

create table flow_edge (
    flow      integer not null,
    source    integer not null,
    target    integer not null,
    parameter text not null default '',      -- of the target, that gets the result of the source; '': none
    primary key (flow, source, target, parameter)
) without rowid;
create index flow_edge_target on flow_edge (flow, target);

-- The worklist: differences that are not counted yet.
create table flow_end (
    flow      integer not null,
    node      integer,
    succeeded integer not null default 0,
    failed    integer not null default 0,
    canceled  integer not null default 0,
    cancels   integer not null default 0     -- the flow is to be canceled
);
create index flow_end_flow on flow_end (flow);
