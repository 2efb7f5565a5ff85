-- A tenant whose leases lie in the future, because the clock was set back, has work: its leases must be
-- restarted. Else a sleeping tenant would wait for the whole step.

-- True if a worker of this schema would find something to do. For an idle tenant this is one statement of
-- index probes only, because `tenants_with_work` sets the planner so.
create or replace function {schema}.has_work() returns boolean
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
    -- A lease of the future is restarted, and an expired one recovered, even where nothing may start. The
    -- leases of the future are those that end last. A second more: a claim can be younger than `at`.
    in_queue := (select min(queue) from {schema}.job where stage = {leased});
    while in_queue is not null loop
        if exists (select from {schema}.job
                   where stage = {leased} and queue = in_queue and lease_expires_at <= at)
            or exists (select from (
                   select coalesce(heartbeat_at, leased_at) as began from {schema}.job
                   where stage = {leased} and queue = in_queue
                   order by queue desc, lease_expires_at desc limit 10) last
                   where last.began > at + interval '1 s') then
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

-- Where the sequence of ids is behind the rows, a taken id is an error of its own. It counted as a taken key:
-- 20 ids were drawn, and the error named a key.
create or replace function {schema}.enqueue(
    task text,
    args json default '{}',
    queue text default 'default',
    priority integer default 0,
    run_at timestamptz default null,
    target text default null,
    unique_key text default null,
    idempotency_key text default null,
    max_attempts integer default 15,
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
    at timestamptz := {schema}.clock();
    refused_by text;
begin
    perform {schema}.check_new_job(enqueue.task, enqueue.args, enqueue.queue, enqueue.priority, at,
        enqueue.run_at, enqueue.target, enqueue.unique_key, enqueue.max_attempts,
        enqueue.timeout_seconds, enqueue.tags, enqueue.limit_key);
    if enqueue.idempotency_key is not null then
        perform {schema}.check_key('idempotency_key', enqueue.idempotency_key);
    end if;
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
            on conflict (unique_key) where unique_key is not null and stage <> {failed} do nothing
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
            get stacked diagnostics refused_by = constraint_name;
            if refused_by = 'job_pkey' then
                raise object_not_in_prerequisite_state using message = 'the next job id is taken: the '
                    'sequences of the schema are behind its rows, as after a restore without them',
                    hint = 'Run `freehold migrate`, which advances them. Nothing was written.';
            end if;
            id := null; created := null;  -- the same key was committed meanwhile: read again
        end;
    end loop;
    raise serialization_failure using message = 'a key kept changing hands: try again';
end
$$;
