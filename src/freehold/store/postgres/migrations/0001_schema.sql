-- The whole schema: live jobs, their history, and what they need.
--
-- `stage` is one byte in every row. {ready}, {leased} and the other names in braces stand for those
-- bytes; the list is in store/stages.sql, and the view `jobs` shows the words.

-- The one source of time of this store. Tests may replace it; nothing else may.
create function {schema}.clock() returns timestamptz
    language sql volatile parallel safe
    as 'select pg_catalog.clock_timestamp()';

create sequence {schema}.job_id;

-- One token for each claim statement. It grows over all claims, so that a later holder of a job, or
-- of a lane, always has the larger one.
create sequence {schema}.lease_token;

-- The constraints of a live job, in one function. The server parses a constraint's expression again
-- for every statement, which took half the time of inserting one job; it caches a function.
create function {schema}.job_is_valid(
    stage "char", target text, attempt smallint, max_attempts smallint, lost_attempts smallint,
    lease_owner text, lease_token bigint, lease_expires_at timestamptz, leased_at timestamptz,
    heartbeat_at timestamptz, started_at timestamptz, stop_request text) returns boolean
    language plpgsql immutable parallel safe
    as $$
declare
    wrong   text;
begin
    -- Nearly every row is plain ready or plain leased: one expression decides those.
    if attempt >= 0 and max_attempts >= 1 and lost_attempts >= 0 and (
        stage = {ready} and num_nonnulls(lease_owner, lease_token, lease_expires_at, leased_at,
                                     heartbeat_at, started_at, stop_request) = 0
        or stage = {leased} and stop_request is null
            and num_nulls(lease_owner, lease_token, lease_expires_at, leased_at) = 0)
    then
        return true;
    end if;
    wrong := case
        when stage not in ({pending}, {scheduled}, {ready}, {lane_head}, {follower}, {parked}, {leased},
                {backoff}, {paused}, {paused_follower}, {failed}, {limited}, {lane_paused}) then 'job_stage'
        -- A leased row has owner, token and expiry; no other row has any of them.
        when num_nulls(lease_owner, lease_token, lease_expires_at, leased_at)
                <> case when stage = {leased} then 0 else 4 end
            or stage <> {leased} and num_nonnulls(heartbeat_at, started_at) > 0 then 'job_lease'
        when stop_request is not null
            and (stage <> {leased} or stop_request not in ('cancel', 'pause')) then 'job_stop_request'
        when target is null and stage in ({lane_head}, {follower}, {backoff}, {paused_follower},
                {failed}, {lane_paused}) then 'job_lane'
        when attempt < 0 or max_attempts < 1 or lost_attempts < 0 then 'job_attempts'
    end;
    if wrong is not null then
        raise check_violation using
            message = format('a job violates the constraint %I', wrong),
            constraint = wrong, table = 'job', schema = '{schema}';
    end if;
    return true;
end
$$;

-- Jobs that have not finished. `stage` names what a row waits for, and so the partial index below in
-- which it stands (model/state.py).
create table {schema}.job (
    id                  bigint primary key,
    created_at          timestamptz not null,
    run_at              timestamptz,            -- null: at once
    leased_at           timestamptz,
    lease_expires_at    timestamptz,
    heartbeat_at        timestamptz,            -- null: not renewed since leased_at
    started_at          timestamptz,            -- null: assigned, not yet reported as running
    lease_token         bigint,
    timeout_seconds     real,
    priority            smallint not null,
    attempt             smallint not null default 0,
    max_attempts        smallint not null,
    lost_attempts       smallint not null default 0,
    stage               "char" not null,
    stop_request        text,                   -- cancel or pause, requested of the owner
    queue               text not null,
    task                text not null,
    lease_owner         text,
    target              text,
    limit_key           text,
    unique_key          text,
    tags                json,
    policy              json,
    stop_requested_by   text,
    stop_request_reason text,
    reason              text,
    progress            json,                   -- the latest that the handler reported
    args                json not null,

    constraint job_is_valid check ({schema}.job_is_valid(
        stage, target, attempt, max_attempts, lost_attempts, lease_owner, lease_token,
        lease_expires_at, leased_at, heartbeat_at, started_at, stop_request))
) with (
    -- Every row of this table is deleted soon: vacuum early, or the claim reads dead rows.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    -- Sessions keep plans for hours, and a plan made for an empty file reads all of it. The file
    -- never shrinks, so that a plan made while the queue is idle is still good in a flood.
    vacuum_truncate = off
);
-- For the same reason the table starts with a megabyte of free space.
insert into {schema}.job (id, created_at, priority, max_attempts, stage, queue, task, reason, args)
    select -i, now(), 0, 1, {pending}, '', '', repeat('.', 1900), '{}' from generate_series(1, 500) i;
delete from {schema}.job;

-- Statistics of these columns are wrong within the hour: a backlog arrives, is claimed, and is gone
-- before an ANALYZE. Without statistics the planner uses its defaults, which are the same at any hour
-- and always lead to the indexes below. tests/store_postgres/test_plans.py reads the plans.
alter table {schema}.job
    alter column id set statistics 0, alter column run_at set statistics 0,
    alter column stage set statistics 0, alter column queue set statistics 0,
    alter column task set statistics 0;

-- The ready set. (-priority) makes "highest first, then oldest" one ascending range.
-- coalesce() hides the real selectivity. The planner then assumes half of the table matches, and
-- prefers this index with a LIMIT over a sort. See sql/_is_ready.sql.
create index job_claim on {schema}.job (queue, (-priority), id)
    where coalesce(stage in ({ready}, {lane_head}), false);
-- Jobs that stand in a lane without holding it, in order.
create index job_lane on {schema}.job (target, id)
    where target is not null and stage in ({ready}, {follower}, {paused_follower});
-- The guarantee that a lane has at most one holder.
create unique index job_lane_holder on {schema}.job (target)
    where target is not null and stage in ({lane_head}, {parked}, {leased}, {backoff}, {paused},
        {failed}, {limited}, {lane_paused});
create index job_expiry on {schema}.job (queue, lease_expires_at) where stage = {leased};
create index job_due on {schema}.job (run_at) where stage in ({scheduled}, {backoff});
create unique index job_unique on {schema}.job (unique_key)
    where unique_key is not null and stage <> {failed};
create index job_stop_request on {schema}.job (lease_owner) where stop_request is not null;
-- Leased and ready jobs of a limit_key; and the jobs that wait for it, in the order of the claim.
create index job_limit_key on {schema}.job (limit_key, stage)
    where limit_key is not null and stage in ({ready}, {lane_head}, {leased});
create index job_limited on {schema}.job (limit_key, (-priority), id) where stage = {limited};
create index job_parked on {schema}.job (task) where stage = {parked};
-- Pages of jobs that wait for a person.
create index job_attention on {schema}.job (id)
    where stage in ({pending}, {paused}, {paused_follower}, {failed});

-- Live jobs with words in the place of the stage's byte, for people with psql.
create view {schema}.jobs as
    select j.id, w.state, w.stage, j.queue, j.task, j.priority, j.target, j.attempt, j.max_attempts,
        j.lost_attempts, j.created_at, j.run_at, j.lease_owner, j.lease_token, j.lease_expires_at,
        j.heartbeat_at, j.started_at, j.stop_request, j.stop_requested_by, j.stop_request_reason,
        j.reason, j.limit_key, j.unique_key, j.timeout_seconds, j.tags, j.policy, j.progress, j.args
    from {schema}.job j
    cross join lateral (
        select s.stage, case when j.stage = {leased} and j.started_at is not null
            then 'running' else s.state end as state
        from (values {stages}) s (stage, letter, state)
        where s.letter::"char" = j.stage) w;

-- Counts of live jobs, up to a bound. They are functions for their settings only: with a bound of
-- thousands the planner would rather collect all rows than walk an index.
create function {schema}.count_ready(queue text, bound integer) returns integer
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where j.queue = count_ready.queue and coalesce(stage in ({ready}, {lane_head}), false)
        limit count_ready.bound) ready
    $$;
create function {schema}.job_counts(bound integer, out ready bigint, out waiting bigint,
    out following bigint, out leased bigint, out paused bigint, out failed bigint,
    out pending bigint, out parked bigint) returns record
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select
        (select count(*) from (select from {schema}.job where coalesce(stage in ({ready}, {lane_head}), false) limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job where stage in ({scheduled}, {backoff}) limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job
            where target is not null and stage in ({ready}, {follower}, {paused_follower}) and stage = {follower} limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job where stage = {leased} limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job
            where stage in ({pending}, {paused}, {paused_follower}, {failed}) and stage in ({paused}, {paused_follower}) limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job
            where stage in ({pending}, {paused}, {paused_follower}, {failed}) and stage = {failed} limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job
            where stage in ({pending}, {paused}, {paused_follower}, {failed}) and stage = {pending} limit job_counts.bound) x),
        (select count(*) from (select from {schema}.job where stage = {parked} limit job_counts.bound) x)
    $$;

-- Finished jobs, partitioned by the day on which they finished; retention drops days.
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
    lost_attempts    smallint not null,
    state            text not null check (state in ('succeeded','failed','canceled')),
    queue            text not null,
    task             text not null,
    finished_by      text,
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

-- What happened to a job besides the routine. One row ends each attempt that did not succeed.
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
-- For readers that follow all events in order.
create index event_order on {schema}.event (id);

-- Log lines of handlers, numbered within their attempt. A line whose write had to be repeated can
-- stand here twice; read_log.sql returns one of a number.
create table {schema}.job_log (
    job_id bigint not null,
    token  bigint not null,
    at     timestamptz not null,
    number smallint not null,
    line   text not null
) partition by range (at);
create index job_log_job on {schema}.job_log (job_id, token, number);

-- Default partitions: rows of a day that was not prepared. Retention deletes them one by one.
create table {schema}.history_rest partition of {schema}.history default;
create table {schema}.event_rest partition of {schema}.event default;
create table {schema}.job_log_rest partition of {schema}.job_log default;

-- Idempotency keys, remembered beyond the end of their job.
create table {schema}.idempotency (
    key        text primary key,
    job_id     bigint not null,
    expires_at timestamptz not null
) with (vacuum_truncate = off);
insert into {schema}.idempotency (key, job_id, expires_at)
    select repeat('.', 200) || i, 0, now() from generate_series(1, 4000) i;
delete from {schema}.idempotency;
create index idempotency_expiry on {schema}.idempotency (expires_at);

-- Pause, weight and limit of a queue. A queue without any of them has no row; '*' is all queues together.
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

-- The same for jobs that share a limit_key. 'github:*' is every key that begins with 'github:', each on
-- its own.
create table {schema}.key_limit (
    key          text primary key,
    max_leases   integer check (max_leases >= 0),
    rate_starts  integer check (rate_starts >= 0),
    rate_seconds double precision check (rate_seconds > 0),
    constraint key_limit_rate check (num_nulls(rate_starts, rate_seconds) <> 1)
);

-- Starts under a rate limit, by slots of a twentieth of its period.
create table {schema}.rate_usage (
    name   text not null,
    slot   bigint not null,
    starts integer not null,
    primary key (name, slot)
);

-- Lanes that an operator paused.
create table {schema}.lane (
    target       text primary key,
    paused_at    timestamptz not null,
    paused_by    text not null,
    pause_reason text,
    paused_until timestamptz
);
create index lane_until on {schema}.lane (paused_until) where paused_until is not null;

-- Live leases up to a bound: of a queue, of all queues ('*'), of a limit_key. An expired lease does not
-- count.
create function {schema}.count_leased(queue text, bound integer) returns integer
    language sql volatile
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where stage = {leased} and (j.queue = count_leased.queue or count_leased.queue = '*')
          and lease_expires_at > (select {schema}.clock())
        limit count_leased.bound) live
    $$;
create function {schema}.count_key_leases(key text, bound integer) returns integer
    language sql volatile
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where limit_key is not null and stage in ({ready}, {lane_head}, {leased})
          and limit_key = count_key_leases.key and stage = {leased}
          and lease_expires_at > (select {schema}.clock())
        limit count_key_leases.bound) live
    $$;

-- The current slot of a rate limit. A window of one period touches 21 slots, the oldest one in part.
create function {schema}.rate_slot(rate_seconds double precision) returns bigint
    language sql volatile
    as $$ select floor(extract(epoch from {schema}.clock()) * 20 / rate_seconds)::bigint $$;

-- How many more jobs may start now under a limit; null: any number.
create function {schema}.limit_remaining(name text, live integer, max_leases integer, rate_starts integer,
    rate_seconds double precision) returns integer
    language sql volatile
    as $$
    select case when max_leases is null and rate_starts is null then null
        else greatest(0, least(max_leases - live, rate_starts - (
            select coalesce(sum(s.starts), 0)::integer from {schema}.rate_usage s
            where s.name = limit_remaining.name and s.slot >= {schema}.rate_slot(rate_seconds) - 20))) end
    $$;

-- Creates the partitions of the days up to `ahead` days from now, and drops those that ended `keep` days
-- ago. Returns how many were dropped. Finishing jobs wait behind the locks of this function, which may
-- wait behind a report of an hour; so it gives up at the first lock that it does not get, before a
-- deadlock is looked for, and the next call tries again.
--
-- Runs as the owner of the tables, so that workers need not own them. pg_temp stands last in the search
-- path, and catalog tables are qualified: a caller's temporary object cannot take their place.
create function {schema}.rotate_partitions(keep double precision, ahead integer) returns integer
    language plpgsql security definer
    set lock_timeout = '100ms'
    set search_path = pg_catalog, pg_temp
    as $$
declare
    parent   text;
    day      date;
    part     text;
    dropped  integer := 0;
    today    date := ({schema}.clock() at time zone 'UTC')::date;
    cutoff   timestamptz := {schema}.clock() - make_interval(secs => keep * 86400);
begin
    if not pg_try_advisory_xact_lock(hashtextextended('{schema}.rotate_partitions', 0)) then
        return 0;
    end if;
    foreach parent in array array['history', 'event', 'job_log'] loop
        for offset_days in 0 .. ahead loop
            day := today + offset_days;
            part := parent || '_' || to_char(day, 'YYYYMMDD');
            continue when to_regclass(format('{schema}.%I', part)) is not null;
            begin
                execute format('create table {schema}.%I (like {schema}.%I including defaults including constraints)', part, parent);
                execute format('alter table {schema}.%I attach partition {schema}.%I for values from (%L) to (%L)',
                    parent, part, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
            exception
                when check_violation then null;  -- rows of that day stay in the default partition
                when lock_not_available then exit;
            end;
        end loop;
        for part in
            select c.relname from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
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
revoke execute on function {schema}.rotate_partitions(double precision, integer) from public;
select {schema}.rotate_partitions(36500, 7);

-- One row for each worker, written by itself. It decides nothing: only leases say which worker owns a job.
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
) with (fillfactor = 50);                   -- heartbeats update in place: no index has their columns

-- When workers were last notified of a queue. Producers read it, and do not notify again a moment later.
-- Unlogged: a crash loses it, which costs one notification.
create unlogged table {schema}.last_notified (
    topic text primary key,
    at    timestamptz not null
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- The directory of tenants, used in the control schema only. Each tenant has a schema of its own,
-- `<control schema>_t_<tenant>`, on this server or on another.
create table {schema}.tenant (
    name       text primary key,
    shard      text not null,                -- a name in the settings; 'home': this server
    state      text not null check (state in ('active','paused','moving','degraded')),
    weight     real not null default 1 check (weight > 0),
    max_slots  integer check (max_slots >= 1),
    created_at timestamptz not null,
    note       text,                         -- paused by, and why; or what is broken
    moving_to  text,                         -- the shard, while it moves
    moved_from text,                         -- the shard that still has its old schema
    constraint tenant_moving check ((state = 'moving') = (moving_to is not null))
);

-- True if a worker of this schema would find something to do. For an idle tenant this is one statement of
-- index probes only, because `tenants_with_work` sets the planner so.
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
declare
    at timestamptz := {schema}.clock();
    in_queue text;
begin
    if not (exists (select from {schema}.job where stage = {leased})
            or exists (select from {schema}.job where coalesce(stage in ({ready}, {lane_head}), false))
            or exists (select from {schema}.job where stage in ({scheduled}, {backoff}) and run_at <= at)
            or exists (select from {schema}.job where stage = {limited})
            or exists (select from {schema}.lane where paused_until <= at)) then
        return false;
    end if;
    -- An expired lease is recovered even where nothing may start.
    in_queue := (select min(queue) from {schema}.job where stage = {leased});
    while in_queue is not null loop
        if exists (select from {schema}.job
                   where stage = {leased} and queue = in_queue and lease_expires_at <= at) then
            return true;
        end if;
        in_queue := (select min(queue) from {schema}.job where stage = {leased} and queue > in_queue);
    end loop;
    if exists (select from {schema}.queue where name = '*' and paused_at is not null
               and coalesce(paused_until > at, true)) then
        return false;
    end if;
    -- Due, or waiting for a limit_key or a paused lane that a sweep has to check.
    if exists (select from {schema}.job where stage in ({scheduled}, {backoff}) and run_at <= at)
        or exists (select from {schema}.job where stage = {limited})
        or exists (select from {schema}.lane where paused_until <= at) then
        return true;
    end if;
    -- Ready, in a queue that is not paused.
    in_queue := (select queue from {schema}.job
                 where coalesce(stage in ({ready}, {lane_head}), false) order by queue limit 1);
    while in_queue is not null loop
        if not exists (select from {schema}.queue where name = in_queue
                       and paused_at is not null and coalesce(paused_until > at, true)) then
            return true;
        end if;
        in_queue := (select queue from {schema}.job
                     where coalesce(stage in ({ready}, {lane_head}), false) and queue > in_queue
                     order by queue limit 1);
    end loop;
    return false;
end
$$;

-- Checks many schemas at once. An error in one schema is returned as its row; a locked one is checked
-- again at the next call.
create function {schema}.tenants_with_work(schemas text[])
    returns table (schema text, has_work boolean, error text)
    language plpgsql volatile
    set lock_timeout = '20ms'
    set search_path = pg_catalog, pg_temp
    set enable_bitmapscan = off
    set enable_seqscan = off
    -- Or the first five checks of each of hundreds of schemas are planned again.
    set plan_cache_mode = force_generic_plan
    as $$
begin
    foreach schema in array schemas loop
        error := null;
        begin
            execute format('select %I.has_work()', schema) into has_work;
        exception
            when lock_not_available then
                has_work := false;
            when others then
                has_work := false;
                error := sqlerrm;
        end;
        return next;
    end loop;
end
$$;

-- For external autoscalers: how many jobs can be claimed now, in one queue or in all, counted up to
-- 10000; none of a paused queue. Reads the index of the claim only.
create function {schema}.backlog(queue text default null) returns integer
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    with recursive ready_queue as (
        (select j.queue from {schema}.job j where backlog.queue is null
            and coalesce(j.stage in ({ready}, {lane_head}), false) order by j.queue limit 1)
        union all
        select (select j.queue from {schema}.job j
                where coalesce(j.stage in ({ready}, {lane_head}), false) and j.queue > q.queue
                order by j.queue limit 1)
        from ready_queue q where q.queue is not null
    ),
    requested as (
        select q.queue from ready_queue q where q.queue is not null
        union all
        select backlog.queue where backlog.queue is not null
    )
    select least(coalesce(sum({schema}.count_ready(a.queue, 10000)), 0), 10000)::integer
    from requested a
    where not exists (
        select from {schema}.queue p
        where p.name in (a.queue, '*') and p.paused_at is not null
          and coalesce(p.paused_until > {schema}.clock(), true))
    $$;

-- The limit over all queues of a control schema (its row '*' in `queue`) holds over all tenants of this
-- database. `at_most` is never less than the live leases of a schema: its last count, plus what was
-- granted since. Only a grant adds to it, and grants run one at a time; so leases are counted again only
-- where the sum leaves too little room. Used in the control schema only.
create table {schema}.shared_lease_upper_bound (
    schema      text primary key,
    at_most     integer not null,
    counted_at  timestamptz not null,
    refused_at  timestamptz,             -- refused every grant since then
    requested_at timestamptz            -- its last request
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- Live leases of another schema. A schema that is gone has none; one that is locked or cannot be read may
-- have as many as before.
create function {schema}.count_schema_leases(other text, at_most integer) returns integer
    language plpgsql volatile
    set lock_timeout = '20ms'
    set search_path = pg_catalog, pg_temp
    as $$
declare
    live integer;
begin
    execute format('select %I.count_leased(''*'', $1)', other) into live using at_most;
    return live;
exception
    when invalid_schema_name or undefined_table or undefined_function then
        return 0;
    when others then
        return at_most;
end
$$;

-- How many leases a schema may take now, of `wanted` jobs that are ready. Null: there is no limit; -1:
-- nothing is ready. Never waits: while another transaction counts, it grants none. Each statement of a
-- volatile function sees what was committed before it, and so everything that was granted under the lock.
--
-- Its own leases are counted first, then the schemas whose count is oldest; at most one count in two
-- milliseconds per schema, however many tenants there are. A schema that ends jobs and asks again at once
-- would always come before the refused ones: so one lease is reserved for the schema that was refused for
-- longest, if that is two seconds or more. One, because it may be a second until it asks again.
create function {schema}.grant_leases(requesting text, wanted integer) returns integer
    language plpgsql volatile
    set search_path = pg_catalog, pg_temp
    as $$
declare
    now     timestamptz := clock_timestamp();
    own     {schema}.shared_lease_upper_bound;
    other   record;
    room    bigint;
    kept    integer;
    live    integer;
    granted integer;
begin
    if wanted <= 0 then
        return -1;
    end if;
    if not pg_try_advisory_xact_lock(hashtextextended('leases of {schema}', 0)) then
        return 0;
    end if;
    room := (select max_leases from {schema}.queue where name = '*');
    if room is null then
        return null;
    end if;
    room := room - (select coalesce(sum(at_most), 0) from {schema}.shared_lease_upper_bound);
    select * into own from {schema}.shared_lease_upper_bound where schema = requesting;
    own.at_most := coalesce(own.at_most, 0);
    kept := (select count(*) from (
        select from {schema}.shared_lease_upper_bound b
        where b.schema <> requesting and b.refused_at < coalesce(own.refused_at, now)
          and b.refused_at < now - interval '2 s' and b.requested_at > now - interval '3 s'
        limit 1) first);
    if room < wanted + kept and own.at_most > 0 then
        live := {schema}.count_schema_leases(requesting, own.at_most);
        room := room + own.at_most - live;
        own.at_most := live;
        own.counted_at := now;
    end if;
    if room < wanted + kept then
        for other in
            select b.schema, b.at_most from {schema}.shared_lease_upper_bound b
            where b.schema <> requesting and b.at_most > 0
              and (b.at_most = 1000000 or b.counted_at < now - interval '2 ms' * (
                  select greatest(10, count(*)) from {schema}.shared_lease_upper_bound where at_most > 0))
            order by b.counted_at
        loop
            live := {schema}.count_schema_leases(other.schema, other.at_most);
            room := room + other.at_most - live;
            update {schema}.shared_lease_upper_bound b set at_most = live, counted_at = clock_timestamp()
                where b.schema = other.schema;
            exit when room >= wanted + kept;
        end loop;
    end if;
    granted := greatest(0, least(wanted, room - kept));
    insert into {schema}.shared_lease_upper_bound as b (schema, at_most, counted_at, refused_at, requested_at)
        values (requesting, own.at_most + granted, coalesce(own.counted_at, now),
            case when granted = 0 then coalesce(own.refused_at, now) end, now)
        on conflict (schema) do update
        set at_most = excluded.at_most, counted_at = excluded.counted_at,
            refused_at = excluded.refused_at, requested_at = excluded.requested_at;
    return granted;
end
$$;

-- Live leases by schema, for people: counted now, without a lock.
create function {schema}.leases_by_schema() returns table (schema text, live integer)
    language sql volatile
    set search_path = pg_catalog, pg_temp
    as $$
    select b.schema, {schema}.count_schema_leases(b.schema, b.at_most) from {schema}.shared_lease_upper_bound b
    where b.at_most > 0
    $$;

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
    set search_path = pg_catalog, pg_temp
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
        perform enqueue.args::jsonb;  -- reads escapes inside strings, too
    exception when others then
        raise invalid_parameter_value using message = format('args cannot be decoded: %s', sqlerrm);
    end;
    if json_typeof(enqueue.tags) = 'null' or json_array_length(enqueue.tags) = 0 then
        enqueue.tags := null;
    end if;
    for try in 1 .. 20 loop
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
                case when enqueue.run_at > at then {scheduled} else {ready} end, enqueue.priority,
                enqueue.max_attempts, enqueue.timeout_seconds, enqueue.queue, enqueue.task,
                enqueue.target, enqueue.limit_key, enqueue.unique_key, enqueue.tags, enqueue.args)
            on conflict do nothing
            returning j.id, true into id, created;
            if created is null then
                select j.id, false into id, created from {schema}.job j
                where j.unique_key = enqueue.unique_key and j.stage <> {failed};
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
            id := null; created := null;  -- the same key was committed meanwhile: read again
        end;
    end loop;
    raise serialization_failure using message = 'a key kept changing hands: try again';
end
$$;
