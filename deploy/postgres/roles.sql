-- Four roles for a schema called freehold and the schemas of its tenants, freehold_t_NAME. Run it as the
-- database's administrator, before the first `freehold migrate`, and again after each `freehold migrate`,
-- `freehold tenants create` and `freehold tenants move`: it can be repeated, also beside running workers.
-- Then create a user for each part of your system, as a member of one role:
--   create role shop_worker login password '…' in role freehold_worker;
-- Migrations must run as the owner role itself, so that all tables have the same owner:
--   create role shop_owner login password '…' in role freehold_owner;
--   alter role shop_owner set role = freehold_owner;
-- In a database that no other program needs for temporary tables, forbid them as well: a temporary table
-- is the means of attacks on functions that run as their owner.
--   revoke temporary on database shop from public;

-- Owner: owns the schemas; migrates, and creates, moves and drops tenants. No long-running program needs it.
-- Worker: runs jobs, and operates on them: `freehold worker`, `up` and the HTTP API.
-- Producer: enqueues and sends signals, and cannot read jobs.
-- Viewer: reads everything, job arguments included: `top`, `jobs`, reports, autoscalers.
do $$
declare
    role text;
begin
    foreach role in array array['freehold_owner', 'freehold_worker', 'freehold_producer',
                                'freehold_viewer'] loop
        if not exists (select from pg_roles where rolname = role) then
            execute format('create role %I nologin', role);
        end if;
    end loop;
    -- `freehold migrate` executes "create schema if not exists", which checks this privilege first.
    execute format('grant create on database %I to freehold_owner', current_database());
end
$$;

create schema if not exists freehold authorization freehold_owner;

do $$
declare
    store   text;
    called  regprocedure;
    foreign_objects text;
begin
    -- Policies need a moment without any statement on their table. Statements that come meanwhile wait
    -- behind this one: rather give up, and be run again.
    set local lock_timeout = '2s';
    for store in
        select nspname from pg_namespace
        where nspname = 'freehold'
           or nspname ~ '^freehold_(t|left)_' and to_regclass(format('%I.migration', nspname)) is not null
        order by nspname
    loop
        -- A function that runs as its owner must have no owner but this role; and retention drops tables,
        -- which only their owner can do.
        select string_agg(format('%s belongs to %s', name, pg_get_userbyid(owner)), ', ' order by name)
        into foreign_objects
        from (select p.oid::regprocedure::text, p.proowner from pg_proc p
              where p.pronamespace = store::regnamespace
              union all
              select c.oid::regclass::text, c.relowner from pg_class c
              where c.relnamespace = store::regnamespace and c.relkind in ('r', 'p', 'v', 'S')
             ) as object (name, owner)
        where pg_get_userbyid(owner) <> 'freehold_owner';
        if foreign_objects is not null then
            raise exception 'schema % has objects that do not belong to freehold_owner: %', store, foreign_objects
                using hint = 'Nothing was granted. Give them to the owner (alter function ... owner to '
                    'freehold_owner; alter table ... owner to freehold_owner), or drop them; then run this again.';
        end if;

        execute format('revoke all on schema %I from public', store);
        execute format('grant usage on schema %I to freehold_worker, freehold_producer, freehold_viewer', store);
        -- Existing tables, and those of later migrations by the owner.
        execute format('grant select on all tables in schema %I to freehold_worker, freehold_viewer', store);
        execute format('grant insert, update, delete on all tables in schema %I to freehold_worker', store);
        execute format('grant usage on all sequences in schema %I to freehold_worker', store);
        execute format('alter default privileges for role freehold_owner in schema %I
            grant select on tables to freehold_worker, freehold_viewer', store);
        execute format('alter default privileges for role freehold_owner in schema %I
            grant insert, update, delete on tables to freehold_worker', store);
        execute format('alter default privileges for role freehold_owner in schema %I
            grant usage on sequences to freehold_worker', store);

        -- Objects that exist only once the schema is migrated.
        if to_regprocedure(format('%I.send_signal(text, json, interval, text)', store)) is null then
            raise notice '% is not migrated yet: migrate as its owner, then run this again', store;
            continue;
        end if;
        -- Public, unless the database takes new functions from the public. Those that run as their owner are granted
        -- below; sequences are advanced by the owner only.
        for called in
            select p.oid from pg_proc p where p.pronamespace = store::regnamespace and not p.prosecdef
                and p.proname <> 'advance_sequences'
        loop
            execute format('grant execute on function %s to freehold_worker, freehold_producer, freehold_viewer', called);
        end loop;
        -- Only the owner writes the versions of the schema.
        execute format('revoke insert, update, delete on %I.migration from freehold_worker', store);
        -- A recorded change is never changed again. Retention deletes it.
        execute format('revoke update on %I.audit from freehold_worker', store);
        execute format('grant execute on function %I.rotate_partitions(double precision, integer)
            to freehold_worker', store);
        -- Runs as its owner: a producer can neither read nor change a signal that was sent.
        execute format('grant execute on function %I.send_signal(text, json, interval, text)
            to freehold_worker, freehold_producer', store);
        -- Before the first number of a connection.
        if to_regprocedure(format('%I.check_timeline()', store)) is not null then
            execute format('grant execute on function %I.check_timeline() to freehold_worker, freehold_producer', store);
        end if;
        -- Enough to insert a job and to find the job of a key; no arguments, no owners, no history. A new job
        -- has these columns; the others are those of a lease, of attempts and of reports.
        execute format('revoke insert on %I.job from freehold_producer', store);
        execute format('grant insert (id, created_at, run_at, stage, priority, max_attempts, timeout_seconds,
            queue, task, target, limit_key, unique_key, tags, policy, args, meta, waiting_key, start_by) on %I.job to freehold_producer', store);
        execute format('grant select (id, created_at, unique_key, waiting_key, stage) on %I.job to freehold_producer', store);
        -- When workers were last notified of a queue.
        execute format('grant select, insert, update on %I.last_notified to freehold_producer', store);
        execute format('grant select, insert, update, delete on %I.idempotency to freehold_producer', store);
        -- Replacing what a waiting job carries, also by a debounce or a throttle, is for workers.
        execute format('grant select on %I.throttle to freehold_producer', store);
        execute format('grant usage on sequence %I.job_id to freehold_producer', store);
        execute format('grant execute on function %I.has_ended(bigint) to freehold_producer', store);
        execute format('grant select on %I.migration to freehold_producer', store);

        -- A producer writes its rows itself, so the server checks their values. Policies of other roles
        -- change nothing: for them the planner drops a policy that is always true.
        if not exists (select from pg_policy where polname = 'new_job'
                       and polrelid = to_regclass(format('%I.job', store))) then
            execute format('alter table %I.job enable row level security', store);
            execute format('create policy any_row on %I.job using (true) with check (true)', store);
            execute format('create policy new_job on %1$I.job as restrictive for insert to freehold_producer
                with check (%1$I.is_new_job(id, stage, task, args, queue, priority, created_at, run_at, target,
                    unique_key, max_attempts, timeout_seconds, tags, limit_key, policy))', store);
        end if;
        if not exists (select from pg_policy where polname = 'new_meta'
                       and polrelid = to_regclass(format('%I.job', store))) then
            execute format('create policy new_meta on %1$I.job as restrictive for insert to freehold_producer
                with check (meta is null or %1$I.is_meta(meta))', store);
        end if;
        if not exists (select from pg_policy where polname = 'new_waiting_key'
                       and polrelid = to_regclass(format('%I.job', store))) then
            execute format('create policy new_waiting_key on %1$I.job as restrictive for insert
                to freehold_producer with check (waiting_key is null or %1$I.is_waiting_key(waiting_key, task))', store);
        end if;
        if not exists (select from pg_policy where polname = 'new_start_by'
                       and polrelid = to_regclass(format('%I.job', store))) then
            execute format('create policy new_start_by on %I.job as restrictive for insert to freehold_producer
                with check (start_by is null or start_by between %L and %L)', store,
                '0001-01-02 UTC', '9999-12-30 UTC');
        end if;
        if not exists (select from pg_policy where polname = 'new_key'
                       and polrelid = to_regclass(format('%I.idempotency', store))) then
            execute format('alter table %I.idempotency enable row level security', store);
            execute format('create policy any_row on %I.idempotency using (true) with check (true)', store);
            execute format('create policy new_key on %1$I.idempotency as restrictive to freehold_producer
                using (true) with check (%1$I.is_new_key(key, job_id, expires_at))', store);
        end if;
        -- Producers subtract this time from that of their job; a time without an end would be an error.
        if not exists (select from pg_policy where polname = 'notified_now'
                       and polrelid = to_regclass(format('%I.last_notified', store))) then
            execute format('alter table %I.last_notified enable row level security', store);
            execute format('create policy any_row on %I.last_notified using (true) with check (true)', store);
            execute format('create policy notified_now on %1$I.last_notified as restrictive to freehold_producer
                using (true) with check (length(topic) <= 110 and at between %1$I.clock() - interval ''1 min''
                    and %1$I.clock() + interval ''1 min'')', store);
        end if;
    end loop;
    -- Where a tenant is, for producers that enqueue for tenants by their names.
    if to_regclass('freehold.tenant') is not null then
        grant select on freehold.tenant to freehold_producer;
    end if;
end
$$;
