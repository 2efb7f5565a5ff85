-- The function `enqueue` returns the job that holds a key only when the synchronous standbys have that job, as the
-- clients do: see sql/_standbys.sql. The rights that were granted on it stay.
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
    meta json default null,
    unique_until text default 'end',
    replace text[] default null,
    debounce_key text default null,
    debounce_seconds double precision default null,
    debounce_at_most_seconds double precision default null,
    throttle_key text default null,
    throttle_seconds double precision default null,
    start_by timestamptz default null,
    start_by_seconds double precision default null,
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
    to_start_by timestamptz;
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
    to_start_by := {schema}.new_start_by(enqueue.start_by, enqueue.start_by_seconds, at, enqueue.run_at,
        waits_with is not null);
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
        if not created then
            perform pg_logical_emit_message(true, 'freehold', '') where current_setting('synchronous_standby_names') <> '';
        end if;
        return;
    end if;
    for try in 1 .. 20 loop
        if enqueue.idempotency_key is not null then
            select i.job_id, false, (select j.created_at from {schema}.job j where j.id = i.job_id)
            into id, created, created_at from {schema}.idempotency i
            where i.key = enqueue.idempotency_key
              and (i.expires_at > at or exists (select from {schema}.job j where j.id = i.job_id));
            if found then
                perform pg_logical_emit_message(true, 'freehold', '') where current_setting('synchronous_standby_names') <> '';
                return;
            end if;
        end if;
        begin
            insert into {schema}.job as j (id, created_at, run_at, stage, priority, max_attempts,
                timeout_seconds, queue, task, target, limit_key, unique_key, tags, args, meta, start_by)
            values ({schema}.next_number('{schema}.job_id'), at, enqueue.run_at,
                case when enqueue.run_at > at then {scheduled} else {ready} end, enqueue.priority,
                enqueue.max_attempts, enqueue.timeout_seconds, enqueue.queue, enqueue.task,
                enqueue.target, enqueue.limit_key, enqueue.unique_key, enqueue.tags, enqueue.args,
                enqueue.meta, to_start_by)
            on conflict (unique_key) where unique_key is not null and stage <> {failed} do nothing
            returning j.id, true, j.created_at into id, created, created_at;
            if created is null then
                select j.id, false, j.created_at into id, created, created_at from {schema}.job j
                where j.unique_key = enqueue.unique_key and j.stage <> {failed};
                continue when id is null;
                perform pg_logical_emit_message(true, 'freehold', '') where current_setting('synchronous_standby_names') <> '';
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
