-- Metadata of a job: a flat JSON object of at most 4,096 bytes. A job without any has null, which takes no
-- space: the column is the last one of its row.
alter table {schema}.job add column meta json;
alter table {schema}.history add column meta json;

create or replace view {schema}.jobs as
    select j.id, w.state, w.stage, j.queue, j.task, j.priority, j.target, j.attempt, j.max_attempts,
        j.lost_attempts, j.created_at, j.run_at, j.lease_owner, j.lease_token, j.lease_expires_at,
        j.heartbeat_at, j.started_at, j.stop_request, j.stop_requested_by, j.stop_request_reason,
        j.reason, j.limit_key, j.unique_key, j.timeout_seconds, j.tags, j.policy, j.progress, j.args,
        j.meta
    from {schema}.job j
    cross join lateral (
        select s.stage, case when j.stage = {leased} and j.started_at is not null
            then 'running' else s.state end as state
        from (values {stages}) s (stage, letter, state)
        where s.letter::"char" = j.stage) w;

-- The same rules as model/meta.py, for every writer that is not the Python client: true, or an error with
-- the reason.
create function {schema}.is_meta(meta json) returns boolean
    language plpgsql immutable parallel safe
    set search_path = pg_catalog, pg_temp
    as $$
declare
    name     text;
    value    json;
begin
    if json_typeof(meta) <> 'object' then
        raise invalid_parameter_value using message = 'meta must be a flat JSON object, such as {"batch": 7}';
    elsif octet_length(meta::text) > 4096 then
        raise invalid_parameter_value using message = 'meta is larger than 4,096 bytes';
    end if;
    perform {schema}.check_payload('the values of meta', meta);
    for name, value in select * from json_each(meta) loop
        perform {schema}.check_key(format('the meta key %L', left(name, 60)), name);
        if json_typeof(value) in ('object', 'array') then
            raise invalid_parameter_value using message = format('meta[%L] is nested: metadata is flat', name);
        elsif json_typeof(value) = 'number' and value::text !~ '[.eE]'
            and value::text::numeric not between -9223372036854775808 and 9223372036854775807 then
            raise invalid_parameter_value using
                message = format('meta[%L] is a number of more than 64 bits: store it as text', name);
        end if;
    end loop;
    -- Readers differ in which of two equal keys they take.
    if (select count(*) > count(distinct key) from json_object_keys(meta) as key) then
        raise invalid_parameter_value using message = 'meta has one key twice';
    end if;
    return true;
end
$$;

drop function {schema}.enqueue(text, json, text, integer, timestamptz, text, text, text, integer, real, json,
    text);
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
    if json_typeof(enqueue.meta) = 'null' or enqueue.meta::text ~ '^\s*{\s*}\s*$' then
        enqueue.meta := null;
    elsif enqueue.meta is not null then
        perform {schema}.is_meta(enqueue.meta);
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
                timeout_seconds, queue, task, target, limit_key, unique_key, tags, args, meta)
            values (nextval('{schema}.job_id'), at, enqueue.run_at,
                case when enqueue.run_at > at then {scheduled} else {ready} end, enqueue.priority,
                enqueue.max_attempts, enqueue.timeout_seconds, enqueue.queue, enqueue.task,
                enqueue.target, enqueue.limit_key, enqueue.unique_key, enqueue.tags, enqueue.args,
                enqueue.meta)
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
