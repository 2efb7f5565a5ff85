-- Four roles for a schema called freehold. Run it as the database's administrator, before the
-- first `freehold migrate` and again after each: it can be repeated. Then create a user for each
-- part of your system, as a member of one role:
--   create role shop_worker login password '…' in role freehold_worker;
-- Migrations must run as the owner role itself, so that all tables have the same owner:
--   create role shop_owner login password '…' in role freehold_owner;
--   alter role shop_owner set role = freehold_owner;

-- Owner: owns the schema and migrates it. No long-running program needs it.
-- Worker: runs jobs, and operates on them: `freehold worker`, `up` and the HTTP API.
-- Producer: enqueues, and cannot read jobs.
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
revoke all on schema freehold from public;
grant usage on schema freehold to freehold_worker, freehold_producer, freehold_viewer;

-- Existing tables, and those of later migrations by the owner.
grant select on all tables in schema freehold to freehold_worker, freehold_viewer;
grant insert, update, delete on all tables in schema freehold to freehold_worker;
grant usage on all sequences in schema freehold to freehold_worker;
alter default privileges for role freehold_owner in schema freehold
    grant select on tables to freehold_worker, freehold_viewer;
alter default privileges for role freehold_owner in schema freehold
    grant insert, update, delete on tables to freehold_worker;
alter default privileges for role freehold_owner in schema freehold
    grant usage on sequences to freehold_worker;

-- Objects that exist only once the schema is migrated.
do $$
begin
    if to_regclass('freehold.job') is null then
        raise notice 'freehold is not migrated yet: migrate as its owner, then run this again';
        return;
    end if;
    -- Only the owner writes the versions of the schema.
    revoke insert, update, delete on freehold.migration from freehold_worker;
    grant execute on function freehold.rotate_partitions(double precision, integer)
        to freehold_worker;
    -- Enough to insert a job and to find the job of a key; no arguments, no owners, no history.
    grant insert on freehold.job to freehold_producer;
    grant select (id, created_at, unique_key, stage) on freehold.job to freehold_producer;
    -- When workers were last notified of a queue.
    grant select, insert, update on freehold.last_notified to freehold_producer;
    grant select, insert, update, delete on freehold.idempotency to freehold_producer;
    grant usage on sequence freehold.job_id to freehold_producer;
    grant select on freehold.migration to freehold_producer;
end
$$;
