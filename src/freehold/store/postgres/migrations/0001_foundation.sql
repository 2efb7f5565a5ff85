-- The live table, the history beside it, and what they need.

-- The one source of time of this store. Tests may replace it; nothing else may.
create function {schema}.clock() returns timestamptz
    language sql volatile parallel safe
    as 'select pg_catalog.clock_timestamp()';

create sequence {schema}.job_id;

-- One token for each claim statement: it grows over all claims, so that a later holder of a
-- job, or of a lane, always has the larger one.
create sequence {schema}.lease_token;

-- Only jobs that are not finished. `stage` says what a row waits for, and so in which of the
-- partial indexes below it stands (see model/state.py).
--   n new  w waits for its time  r ready  R ready, holds its lane  f follows in its lane
--   u no worker knows its task   h leased  b backoff, holds its lane
--   p paused, holds its lane     q paused follower   x failed, blocks its lane
--   l its limit_key has no room  t next in a lane that is paused
create table {schema}.job (
    id               bigint primary key,
    created_at       timestamptz not null,
    run_at           timestamptz,               -- null: at once
    leased_at        timestamptz,
    lease_expires_at timestamptz,
    heartbeat_at     timestamptz,               -- null: not renewed since leased_at
    started_at       timestamptz,               -- null: assigned, not seen to run
    lease_token      bigint,
    timeout_seconds  real,
    priority         smallint not null,
    attempt          smallint not null default 0,
    max_attempts     smallint not null,
    lost             smallint not null default 0,
    stage            "char" not null,
    request          "char",                    -- c cancel, p pause: asked of the owner
    queue            text not null,
    task             text not null,
    lease_owner      text,
    target           text,
    limit_key        text,
    unique_key       text,
    tags             json,
    policy           json,
    request_by       text,
    request_reason   text,
    reason           text,
    progress         json,                      -- the latest that a handler told
    args             json not null,

    constraint job_stage check (stage in ('n','w','r','R','f','u','h','b','p','q','x','l','t')),
    -- A leased row has owner, token and expiry; no other row has any of them.
    constraint job_lease check (
        num_nulls(lease_owner, lease_token, lease_expires_at, leased_at)
            = case when stage = 'h' then 0 else 4 end
        and (stage = 'h' or (heartbeat_at is null and started_at is null))),
    constraint job_request check (request is null or (stage = 'h' and request in ('c','p'))),
    constraint job_lane check (target is not null or stage not in ('R','f','b','q','x','t')),
    constraint job_attempts check (attempt >= 0 and max_attempts >= 1 and lost >= 0)
) with (
    -- Every job dies here: vacuum early, or the claim walks over the dead.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    -- Plans are kept for hours, and those made for an empty file read all of it. The file never
    -- shrinks, so that a plan made while the queue is idle is still good when a flood comes.
    vacuum_truncate = off
);
-- For the same reason it begins with a megabyte of free space.
insert into {schema}.job (id, created_at, priority, max_attempts, stage, queue, task, reason, args)
    select -i, now(), 0, 1, 'n', '', '', repeat('.', 1900), '{}' from generate_series(1, 500) i;
delete from {schema}.job;

-- What is true of these columns at one hour is false at the next: a backlog arrives, is claimed,
-- and is gone before anybody analyzes it. So the planner is told nothing of them, and its
-- defaults, the same at any hour, always lead to the indexes below. The tests read the plans.
alter table {schema}.job
    alter column id set statistics 0, alter column run_at set statistics 0,
    alter column stage set statistics 0, alter column queue set statistics 0,
    alter column task set statistics 0;

-- The ready set. (-priority) makes "highest first, then oldest" one ascending range. To the
-- planner, coalesce() is half of the table: enough that walking this index in order, up to a
-- limit, always looks cheaper than collecting and sorting. See sql/_is_ready.sql.
create index job_claim on {schema}.job (queue, (-priority), id)
    where coalesce(stage in ('r','R'), false);
-- Who stands in a lane without holding it, in order.
create index job_lane on {schema}.job (target, id)
    where target is not null and stage in ('r','f','q');
-- At most one holder for a lane: a guarantee, not only a habit.
create unique index job_holder on {schema}.job (target)
    where target is not null and stage in ('R','u','h','b','p','x','l','t');
create index job_expiry on {schema}.job (queue, lease_expires_at) where stage = 'h';
create index job_due on {schema}.job (run_at) where stage in ('w','b');
create unique index job_unique on {schema}.job (unique_key)
    where unique_key is not null and stage <> 'x';
create index job_request on {schema}.job (lease_owner) where request is not null;
-- What a limit_key has leased and ready; and what waits for it, in the order of the claim.
create index job_key on {schema}.job (limit_key, stage)
    where limit_key is not null and stage in ('r','R','h');
create index job_limited on {schema}.job (limit_key, (-priority), id) where stage = 'l';
create index job_parked on {schema}.job (task) where stage = 'u';
-- Pages of what waits for a person.
create index job_attention on {schema}.job (id) where stage in ('n','p','q','x');

-- What waits for what, up to a bound. Functions only for their settings: for a bound of
-- thousands the planner would rather collect all there is than walk an index.
create function {schema}.count_ready(queue text, bound integer) returns integer
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where j.queue = count_ready.queue and coalesce(stage in ('r','R'), false)
        limit count_ready.bound) ready
    $$;
create function {schema}.counts(bound integer, out ready bigint, out waiting bigint,
    out following bigint, out leased bigint, out paused bigint, out failed bigint,
    out pending bigint, out parked bigint) returns record
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select
        (select count(*) from (select from {schema}.job where coalesce(stage in ('r','R'), false) limit counts.bound) x),
        (select count(*) from (select from {schema}.job where stage in ('w','b') limit counts.bound) x),
        (select count(*) from (select from {schema}.job
            where target is not null and stage in ('r','f','q') and stage = 'f' limit counts.bound) x),
        (select count(*) from (select from {schema}.job where stage = 'h' limit counts.bound) x),
        (select count(*) from (select from {schema}.job
            where stage in ('n','p','q','x') and stage in ('p','q') limit counts.bound) x),
        (select count(*) from (select from {schema}.job
            where stage in ('n','p','q','x') and stage = 'x' limit counts.bound) x),
        (select count(*) from (select from {schema}.job
            where stage in ('n','p','q','x') and stage = 'n' limit counts.bound) x),
        (select count(*) from (select from {schema}.job where stage = 'u' limit counts.bound) x)
    $$;

-- Finished jobs, by the day on which they ended: forgotten by dropping days.
create table {schema}.history (
    id               bigint not null,
    created_at       timestamptz not null,
    run_at           timestamptz,
    leased_at        timestamptz,
    started_at       timestamptz,
    finished_at      timestamptz not null,
    token            bigint,
    timeout_seconds  real,
    priority         smallint not null,
    attempt          smallint not null,
    max_attempts     smallint not null,
    lost             smallint not null,
    state            text not null check (state in ('succeeded','failed','canceled')),
    queue            text not null,
    task             text not null,
    by               text,
    target           text,
    limit_key        text,
    unique_key       text,
    tags             json,
    policy           json,
    reason           text,
    error            json,
    result           json,
    progress         json,
    args             json not null
) partition by range (finished_at);
create index history_id on {schema}.history (id);
create index history_unsuccessful on {schema}.history (id) where state <> 'succeeded';

-- What happened besides the routine way of a job; one row ends an attempt that did not succeed.
create sequence {schema}.event_id;
create table {schema}.event (
    id         bigint not null default nextval('{schema}.event_id'),
    job_id     bigint not null,
    at         timestamptz not null,
    leased_at  timestamptz,
    started_at timestamptz,
    due_at     timestamptz,
    token      bigint,
    attempt    smallint not null,
    kind       text not null,
    state      text not null,
    by         text,
    reason     text,
    error      json
) partition by range (at);
create index event_job on {schema}.event (job_id, id);
-- For whoever follows what happens, in order.
create index event_order on {schema}.event (id);

-- What handlers said while they ran, numbered within their attempt. A line whose write had to be
-- repeated can stand here twice: `read_notes` takes one of a number.
create table {schema}.note (
    job_id bigint not null,
    token  bigint not null,
    at     timestamptz not null,
    number smallint not null,
    line   text not null
) partition by range (at);
create index note_job on {schema}.note (job_id, token, number);

-- The nets: where no day was prepared, rows land here and are forgotten one by one.
create table {schema}.history_rest partition of {schema}.history default;
create table {schema}.event_rest partition of {schema}.event default;
create table {schema}.note_rest partition of {schema}.note default;

-- Keys that callers made, remembered beyond their job's end.
create table {schema}.idempotency (
    key        text primary key,
    job_id     bigint not null,
    expires_at timestamptz not null
) with (vacuum_truncate = off);
insert into {schema}.idempotency (key, job_id, expires_at)
    select repeat('.', 200) || i, 0, now() from generate_series(1, 4000) i;
delete from {schema}.idempotency;
create index idempotency_expiry on {schema}.idempotency (expires_at);

-- What a queue may: rows only where somebody has said something. '*' is all queues together.
create table {schema}.queue (
    name         text primary key,
    paused_at    timestamptz,
    paused_by    text,
    pause_reason text,
    paused_until timestamptz,
    weight       real not null default 1 check (weight > 0),
    max_leases   integer check (max_leases >= 0),   -- live leases at a time
    rate_starts  integer check (rate_starts >= 0),  -- starts within any rate_seconds
    rate_seconds double precision check (rate_seconds > 0),
    constraint queue_rate check (num_nulls(rate_starts, rate_seconds) <> 1)
);

-- The same for jobs that share a limit_key; 'github:*' is every key that begins with 'github:',
-- each for itself.
create table {schema}.key_limit (
    key          text primary key,
    max_leases   integer check (max_leases >= 0),
    rate_starts  integer check (rate_starts >= 0),
    rate_seconds double precision check (rate_seconds > 0),
    constraint key_limit_rate check (num_nulls(rate_starts, rate_seconds) <> 1)
);

-- How often something with a rate has started, by slots of a twentieth of its period.
create table {schema}.spent (
    name   text not null,
    slot   bigint not null,
    starts integer not null,
    primary key (name, slot)
);

-- Lanes that are paused as such, by a person.
create table {schema}.lane (
    target       text primary key,
    paused_at    timestamptz not null,
    paused_by    text not null,
    pause_reason text,
    paused_until timestamptz
);
create index lane_until on {schema}.lane (paused_until) where paused_until is not null;

-- Live leases, up to a bound: of a queue, of all (queue '*'), of a key. An expired lease is none.
create function {schema}.count_leased(queue text, bound integer) returns integer
    language sql volatile
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where stage = 'h' and (j.queue = count_leased.queue or count_leased.queue = '*')
          and lease_expires_at > (select {schema}.clock())
        limit count_leased.bound) live
    $$;
create function {schema}.count_key(key text, bound integer) returns integer
    language sql volatile
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where limit_key is not null and stage in ('r','R','h')
          and limit_key = count_key.key and stage = 'h'
          and lease_expires_at > (select {schema}.clock())
        limit count_key.bound) live
    $$;

-- The slot of now. A window of a whole period touches 21 of them, the oldest one in part.
create function {schema}.slot(rate_seconds double precision) returns bigint
    language sql volatile
    as $$ select floor(extract(epoch from {schema}.clock()) * 20 / rate_seconds)::bigint $$;
-- How many more may start now under a limit; null: as many as there are.
create function {schema}.room(name text, live integer, max_leases integer, rate_starts integer,
    rate_seconds double precision) returns integer
    language sql volatile
    as $$
    select case when max_leases is null and rate_starts is null then null
        else greatest(0, least(max_leases - live, rate_starts - (
            select coalesce(sum(s.starts), 0)::integer from {schema}.spent s
            where s.name = room.name and s.slot >= {schema}.slot(rate_seconds) - 20))) end
    $$;

-- Prepares the days up to `ahead` days from now, and drops those that ended before `keep` days.
-- Answers how many days were dropped. Hardly waits: whoever finishes jobs meanwhile stands behind
-- this, which may stand behind somebody's report of an hour. It gives up at the first lock it
-- does not get, sooner than a deadlock is looked for, and tries again at the next call.
create function {schema}.turn_days(keep double precision, ahead integer) returns integer
    language plpgsql
    set lock_timeout = '100ms'
    set search_path = pg_catalog
    as $$
declare
    parent   text;
    day      date;
    part     text;
    dropped  integer := 0;
    today    date := ({schema}.clock() at time zone 'UTC')::date;
    cutoff   timestamptz := {schema}.clock() - make_interval(secs => keep * 86400);
begin
    if not pg_try_advisory_xact_lock(hashtextextended('{schema}.turn_days', 0)) then
        return 0;
    end if;
    foreach parent in array array['history', 'event', 'note'] loop
        for offset_days in 0 .. ahead loop
            day := today + offset_days;
            part := parent || '_' || to_char(day, 'YYYYMMDD');
            continue when to_regclass(format('{schema}.%I', part)) is not null;
            begin
                execute format('create table {schema}.%I (like {schema}.%I including defaults including constraints)', part, parent);
                execute format('alter table {schema}.%I attach partition {schema}.%I for values from (%L) to (%L)',
                    parent, part, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
            exception
                when check_violation then null;  -- the net has rows of that day: they stay there
                when lock_not_available then exit;
            end;
        end loop;
        for part in
            select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = format('{schema}.%I', parent)::regclass
              and c.relname ~ ('^' || parent || '_[0-9]{8}$')
              and to_date(right(c.relname, 8), 'YYYYMMDD') + 1
                  <= (cutoff at time zone 'UTC')::date
        loop
            begin
                execute format('drop table {schema}.%I', part);
                dropped := dropped + 1;
            exception when lock_not_available then
                exit;
            end;
        end loop;
    end loop;
    return dropped;
end
$$;
select {schema}.turn_days(36500, 7);

-- For any language: select * from {schema}.enqueue('send', '{"to": "a@example.org"}');
-- The job exists if and only if the caller's transaction commits.
create function {schema}.enqueue(
    task text,
    args json default '{}',
    queue text default 'default',
    priority integer default 0,
    run_at timestamptz default null,
    target text default null,
    unique_key text default null,
    idempotency_key text default null,
    max_attempts integer default 5,
    timeout_seconds real default null,
    tags json default null,
    limit_key text default null,
    out id bigint,
    out created boolean
) returns record
    language plpgsql
    set search_path = pg_catalog
    as $$
#variable_conflict use_column
declare
    name_rule constant text := '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}$';
    at timestamptz := {schema}.clock();
begin
    if enqueue.task is null or enqueue.task !~ name_rule then
        raise invalid_parameter_value using message = format('task %L is not a usable name', enqueue.task);
    elsif enqueue.queue is null or enqueue.queue !~ name_rule then
        raise invalid_parameter_value using message = format('queue %L is not a usable name', enqueue.queue);
    elsif enqueue.args is null or json_typeof(enqueue.args) <> 'object' then
        raise invalid_parameter_value using message = 'args must be a JSON object of the task''s arguments by name';
    elsif octet_length(enqueue.args::text) > 1048576 then
        raise invalid_parameter_value using message = 'args are larger than 1,048,576 bytes';
    elsif enqueue.args::text ~ '(?<!\\)(\\\\)*\\u0000' then
        raise invalid_parameter_value using message = 'args hold a NUL character';
    elsif enqueue.priority is null or enqueue.priority not between -30000 and 30000 then
        raise invalid_parameter_value using message = 'priority must be from -30000 to 30000';
    elsif enqueue.max_attempts is null or enqueue.max_attempts not between 1 and 32000 then
        raise invalid_parameter_value using message = 'max_attempts must be from 1 to 32000';
    elsif not coalesce(enqueue.timeout_seconds > 0 and enqueue.timeout_seconds < 'infinity', true) then
        raise invalid_parameter_value using message = 'timeout_seconds must be more than 0 and finite';
    elsif 200 < greatest(length(enqueue.target), length(enqueue.unique_key),
                         length(enqueue.idempotency_key), length(enqueue.limit_key)) then
        raise invalid_parameter_value using message = 'targets and keys have at most 200 characters';
    elsif '' in (coalesce(enqueue.target, '-'), coalesce(enqueue.unique_key, '-'),
                 coalesce(enqueue.idempotency_key, '-'), coalesce(enqueue.limit_key, '-')) then
        raise invalid_parameter_value using message = 'targets and keys cannot be empty: leave them out';
    elsif concat(enqueue.target, enqueue.unique_key, enqueue.idempotency_key, enqueue.limit_key)
          ~ '[[:cntrl:]]' then
        raise invalid_parameter_value using message = 'targets and keys have printable characters only';
    elsif not coalesce(enqueue.run_at between '0001-01-02 UTC' and '9999-12-30 UTC', true) then
        raise invalid_parameter_value using message = 'run_at must be a time of the years 1 to 9999';
    elsif json_typeof(enqueue.tags) not in ('array', 'null') then
        raise invalid_parameter_value using message = 'tags must be a JSON array of names';
    elsif json_typeof(enqueue.tags) = 'array' and exists (
        select from json_array_elements(enqueue.tags) tag
        where json_typeof(tag) <> 'string' or tag #>> '{}' !~ name_rule) then
        raise invalid_parameter_value using message = 'tags must be usable names';
    end if;
    begin
        perform enqueue.args::jsonb;  -- which also reads what is inside of strings
    exception when others then
        raise invalid_parameter_value using message = format('args cannot be decoded: %s', sqlerrm);
    end;
    if json_typeof(enqueue.tags) = 'null' or json_array_length(enqueue.tags) = 0 then
        enqueue.tags := null;
    end if;
    for look in 1 .. 20 loop
        if enqueue.idempotency_key is not null then
            select i.job_id, false into id, created from {schema}.idempotency i
            where i.key = enqueue.idempotency_key
              and (i.expires_at > at or exists (select from {schema}.job j where j.id = i.job_id));
            if found then return; end if;
        end if;
        begin
            insert into {schema}.job as j (id, created_at, run_at, stage, priority, max_attempts,
                timeout_seconds, queue, task, target, limit_key, unique_key, tags, args)
            values (nextval('{schema}.job_id'), at, enqueue.run_at,
                case when enqueue.run_at > at then 'w' else 'r' end, enqueue.priority,
                enqueue.max_attempts, enqueue.timeout_seconds, enqueue.queue, enqueue.task,
                enqueue.target, enqueue.limit_key, enqueue.unique_key, enqueue.tags, enqueue.args)
            on conflict do nothing
            returning j.id, true into id, created;
            if created is null then
                select j.id, false into id, created from {schema}.job j
                where j.unique_key = enqueue.unique_key and j.stage <> 'x';
                continue when id is null;
            end if;
            if enqueue.idempotency_key is not null then
                delete from {schema}.idempotency i where i.key = enqueue.idempotency_key
                    and i.expires_at <= at;
                insert into {schema}.idempotency (key, job_id, expires_at)
                values (enqueue.idempotency_key, id, at + interval '24 hours');
            end if;
            return;
        exception when unique_violation then
            id := null; created := null;  -- the same key was committed meanwhile: look again
        end;
    end loop;
    raise serialization_failure using message = 'a key kept changing hands: try again';
end
$$;
