-- Keys that a job holds until a worker takes it: unique until the start, debounce, throttle. A leased row is
-- not in the index, so that the next job of the key can wait beside it; a job that a worker gives back loses
-- its key (sql/transition.sql), so that it never meets the newer one. Plain rows are not in the index.
alter table {schema}.job add column waiting_key text;
create unique index job_waiting on {schema}.job (waiting_key)
    where waiting_key is not null and stage <> {leased};

-- When the next job of a throttle may become due. Retention deletes windows that have ended.
create table {schema}.throttle (
    key     text primary key,
    next_at timestamptz not null
) with (fillfactor = 50, vacuum_truncate = off);
-- With some free space, as `job` and `idempotency`: a plan made for an empty file reads all of it.
insert into {schema}.throttle (key, next_at)
    select repeat('.', 200) || i, now() from generate_series(1, 4000) i;
delete from {schema}.throttle;
create index throttle_end on {schema}.throttle (next_at);

create or replace view {schema}.jobs as
    select j.id, w.state, w.stage, j.queue, j.task, j.priority, j.target, j.attempt, j.max_attempts,
        j.lost_attempts, j.created_at, j.run_at, j.lease_owner, j.lease_token, j.lease_expires_at,
        j.heartbeat_at, j.started_at, j.stop_request, j.stop_requested_by, j.stop_request_reason,
        j.reason, j.limit_key, j.unique_key, j.timeout_seconds, j.tags, j.policy, j.progress, j.args,
        j.meta, j.waiting_key
    from {schema}.job j
    cross join lateral (
        select s.stage, case when j.stage = {leased} and j.started_at is not null
            then 'running' else s.state end as state
        from (values {stages}) s (stage, letter, state)
        where s.letter::"char" = j.stage) w;

-- For the policies of producers: a key names its kind and its task.
create function {schema}.is_waiting_key(key text, task text) returns boolean
    language plpgsql immutable parallel safe
    set search_path = pg_catalog, pg_temp
    as $$
declare
    kind constant text := split_part(key, '/', 1);
begin
    if kind not in ('unique', 'debounce', 'throttle') or not starts_with(key, kind || '/' || task || '/') then
        raise invalid_parameter_value using message = 'a waiting key is unique/TASK/KEY, debounce/TASK/KEY or throttle/TASK/KEY';
    end if;
    perform {schema}.check_key('waiting_key', substr(key, length(kind) + length(task) + 3));
    return true;
end
$$;

-- The waiting key of a call, with the rules of model/waiting.py; null: it has none.
create function {schema}.new_waiting_key(
    task text, unique_key text, unique_until text, replace text[], debounce_key text,
    debounce_seconds double precision, debounce_at_most_seconds double precision, throttle_key text,
    throttle_seconds double precision, idempotency_key text, run_at timestamptz) returns text
    language plpgsql immutable parallel safe
    set search_path = pg_catalog, pg_temp
    as $$
declare
    longest constant double precision := 315360000;
    found   text;
begin
    if unique_until is null or unique_until not in ('end', 'start') then
        raise invalid_parameter_value using message = 'unique_until must be end or start';
    elsif unique_until = 'start' and unique_key is null then
        raise invalid_parameter_value using message = 'unique_until needs a unique_key';
    elsif cardinality(replace) > 0 and unique_until = 'end' then
        raise invalid_parameter_value using message = 'replace needs unique_until start';
    elsif not coalesce(replace, '{}') <@ array['args', 'meta', 'priority', 'run_at', 'tags'] then
        raise invalid_parameter_value using message = 'replace must be of args, meta, priority, run_at, tags';
    elsif num_nonnulls(unique_key, debounce_key, throttle_key) > 1 then
        raise invalid_parameter_value using message = 'unique_key, debounce_key and throttle_key exclude each other';
    elsif (debounce_key is null) <> (debounce_seconds is null)
        or debounce_key is null and debounce_at_most_seconds is not null then
        raise invalid_parameter_value using message = 'debounce_key and debounce_seconds belong together';
    elsif (throttle_key is null) <> (throttle_seconds is null) then
        raise invalid_parameter_value using message = 'throttle_key and throttle_seconds belong together';
    elsif not coalesce(debounce_seconds between 0.001 and longest, true)
        or not coalesce(throttle_seconds between 0.001 and longest, true)
        or not coalesce(debounce_at_most_seconds between 0.001 and longest, true) then
        raise invalid_parameter_value using message = 'seconds must be from 0.001 to 315360000, which is ten years';
    elsif debounce_at_most_seconds < debounce_seconds then
        raise invalid_parameter_value using message = 'debounce_at_most_seconds is less than debounce_seconds';
    end if;
    found := case when unique_until = 'start' then 'unique/' || task || '/' || unique_key
                  when debounce_key is not null then 'debounce/' || task || '/' || debounce_key
                  when throttle_key is not null then 'throttle/' || task || '/' || throttle_key end;
    if found is null then
        return null;
    elsif idempotency_key is not null then
        raise invalid_parameter_value using message =
            'idempotency_key excludes unique_until start, debounce and throttle';
    elsif unique_until = 'end' and run_at is not null then
        raise invalid_parameter_value using message = 'debounce and throttle choose the time: leave out run_at';
    end if;
    perform {schema}.is_waiting_key(found, task);
    return found;
end
$$;

drop function {schema}.enqueue(text, json, text, integer, timestamptz, text, text, text, integer, real, json,
    text, json);
create function {schema}.enqueue(
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
    meta json default null,
    unique_until text default 'end',
    replace text[] default null,
    debounce_key text default null,
    debounce_seconds double precision default null,
    debounce_at_most_seconds double precision default null,
    throttle_key text default null,
    throttle_seconds double precision default null,
    out id bigint,
    out created boolean,
    out replaced boolean,
    out created_at timestamptz
) returns record
    language plpgsql
    set search_path = pg_catalog, pg_temp
    as $$
#variable_conflict use_column
declare
    at timestamptz := {schema}.clock();
    refused_by text;
    waits_with text;
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
    if json_typeof(enqueue.meta) = 'null' or enqueue.meta::text ~ '^\s*{\s*}\s*$' then
        enqueue.meta := null;
    elsif enqueue.meta is not null then
        perform {schema}.is_meta(enqueue.meta);
    end if;
    replaced := false;
    waits_with := {schema}.new_waiting_key(enqueue.task, enqueue.unique_key, enqueue.unique_until,
        enqueue.replace, enqueue.debounce_key, enqueue.debounce_seconds, enqueue.debounce_at_most_seconds,
        enqueue.throttle_key, enqueue.throttle_seconds, enqueue.idempotency_key, enqueue.run_at);
    if waits_with is not null then
        if enqueue.debounce_key is not null then
            enqueue.replace := '{args,meta,run_at}';
            enqueue.run_at := at + make_interval(secs => enqueue.debounce_seconds);
        elsif enqueue.throttle_key is not null then
            enqueue.replace := '{args,meta}';
        end if;
        select w.id, w.created, w.replaced, w.created_at into id, created, replaced, created_at
        from {schema}.enqueue_waiting(waits_with, enqueue.task, enqueue.args, enqueue.queue, enqueue.priority,
            enqueue.run_at, enqueue.target, enqueue.max_attempts, enqueue.timeout_seconds, enqueue.tags,
            enqueue.limit_key, enqueue.meta, coalesce(enqueue.replace, '{}'),
            enqueue.debounce_at_most_seconds, enqueue.throttle_seconds) w;
        return;
    end if;
    for try in 1 .. 20 loop
        if enqueue.idempotency_key is not null then
            select i.job_id, false, (select j.created_at from {schema}.job j where j.id = i.job_id)
            into id, created, created_at from {schema}.idempotency i
            where i.key = enqueue.idempotency_key
              and (i.expires_at > at or exists (select from {schema}.job j where j.id = i.job_id));
            if found then return; end if;
        end if;
        begin
            insert into {schema}.job as j (id, created_at, run_at, stage, priority, max_attempts,
                timeout_seconds, queue, task, target, limit_key, unique_key, tags, args, meta)
            values (nextval('{schema}.job_id'), at, enqueue.run_at,
                case when enqueue.run_at > at then {scheduled} else {ready} end, enqueue.priority,
                enqueue.max_attempts, enqueue.timeout_seconds, enqueue.queue, enqueue.task,
                enqueue.target, enqueue.limit_key, enqueue.unique_key, enqueue.tags, enqueue.args,
                enqueue.meta)
            on conflict (unique_key) where unique_key is not null and stage <> {failed} do nothing
            returning j.id, true, j.created_at into id, created, created_at;
            if created is null then
                select j.id, false, j.created_at into id, created, created_at from {schema}.job j
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
            id := null; created := null; created_at := null;  -- the same key was committed meanwhile: read again
        end;
    end loop;
    raise serialization_failure using message = 'a key kept changing hands: try again';
end
$$;

-- The part of `enqueue` for keys that a job holds until a worker takes it; the same steps as the statements
-- enqueue_waiting, enqueue_replacing and advance_throttles. Its values are checked by `enqueue`, and for
-- producers by the policies.
create function {schema}.enqueue_waiting(
    waiting_key text, task text, args json, queue text, priority integer, run_at timestamptz, target text,
    max_attempts integer, timeout_seconds real, tags json, limit_key text, meta json, replace text[],
    at_most_seconds double precision, throttle_seconds double precision,
    out id bigint, out created boolean, out replaced boolean, out created_at timestamptz) returns record
    language plpgsql
    set search_path = pg_catalog, pg_temp
    as $$
#variable_conflict use_column
declare
    at     timestamptz := {schema}.clock();
    new_id bigint := nextval('{schema}.job_id');
begin
    if enqueue_waiting.throttle_seconds is not null then
        insert into {schema}.throttle as w (key, next_at) values (enqueue_waiting.waiting_key, at)
        on conflict (key) do update set next_at = w.next_at
        returning greatest(at, w.next_at) into enqueue_waiting.run_at;
    end if;
    for try in 1 .. 20 loop
        if cardinality(enqueue_waiting.replace) = 0 then
            insert into {schema}.job as j (id, created_at, run_at, stage, priority, max_attempts,
                timeout_seconds, queue, task, target, limit_key, tags, args, meta, waiting_key)
            values (new_id, at, enqueue_waiting.run_at,
                case when enqueue_waiting.run_at > at then {scheduled} else {ready} end,
                enqueue_waiting.priority, enqueue_waiting.max_attempts, enqueue_waiting.timeout_seconds,
                enqueue_waiting.queue, enqueue_waiting.task, enqueue_waiting.target,
                enqueue_waiting.limit_key, enqueue_waiting.tags, enqueue_waiting.args,
                enqueue_waiting.meta, enqueue_waiting.waiting_key)
            on conflict (waiting_key) where waiting_key is not null and stage <> {leased} do nothing
            returning j.id, j.created_at into id, created_at;
            if id is null then
                select j.id, j.created_at into id, created_at from {schema}.job j
                where j.waiting_key = enqueue_waiting.waiting_key and j.stage <> {leased};
            end if;
            replaced := false;
        else
            insert into {schema}.job as j (id, created_at, run_at, stage, priority, max_attempts,
                timeout_seconds, queue, task, target, limit_key, tags, args, meta, waiting_key)
            values (new_id, at, enqueue_waiting.run_at,
                case when enqueue_waiting.run_at > at then {scheduled} else {ready} end,
                enqueue_waiting.priority, enqueue_waiting.max_attempts, enqueue_waiting.timeout_seconds,
                enqueue_waiting.queue, enqueue_waiting.task, enqueue_waiting.target,
                enqueue_waiting.limit_key, enqueue_waiting.tags, enqueue_waiting.args,
                enqueue_waiting.meta, enqueue_waiting.waiting_key)
            on conflict (waiting_key) where waiting_key is not null and stage <> {leased} do update set
                args = case when 'args' = any (enqueue_waiting.replace) then excluded.args else j.args end,
                policy = case when 'args' = any (enqueue_waiting.replace) then excluded.policy else j.policy end,
                meta = case when 'meta' = any (enqueue_waiting.replace) then excluded.meta else j.meta end,
                priority = case when 'priority' = any (enqueue_waiting.replace) then excluded.priority else j.priority end,
                tags = case when 'tags' = any (enqueue_waiting.replace) then excluded.tags else j.tags end,
                (run_at, stage) = (
                    select case when m.moves then m.later else j.run_at end,
                           case when not m.moves then j.stage
                                when m.later > excluded.created_at then {scheduled}::"char"
                                else {ready}::"char" end
                    from (select 'run_at' = any (enqueue_waiting.replace)
                                and (j.stage = {scheduled} or j.stage = {ready} and j.target is null) as moves,
                             least(coalesce(excluded.run_at, excluded.created_at), j.created_at
                                + make_interval(secs => enqueue_waiting.at_most_seconds)) as later) m)
            returning j.id, j.created_at into id, created_at;
            replaced := id <> new_id;
        end if;
        exit when id is not null;
    end loop;
    if id is null then
        raise serialization_failure using message = 'a key kept changing hands: try again';
    end if;
    created := id = new_id;
    if created and enqueue_waiting.throttle_seconds is not null then
        update {schema}.throttle set next_at = enqueue_waiting.run_at
            + make_interval(secs => enqueue_waiting.throttle_seconds)
        where key = enqueue_waiting.waiting_key;
    end if;
end
$$;
