-- Four roles for a schema called freehold. Run it as the database's administrator, before the
-- first `freehold migrate` and again after each: it can be repeated. Then make users of yours
-- members, and let each part connect as its own:
--   create role shop_worker login password '…' in role freehold_worker;
-- Whoever migrates must act as the owner, so that all tables belong to one:
--   create role shop_owner login password '…' in role freehold_owner;
--   alter role shop_owner set role = freehold_owner;

-- Owner: owns the schema and migrates it. No program that runs all day needs it.
-- Worker: runs jobs, and operates on them: `freehold worker`, `up` and the HTTP API.
-- Producer: enqueues, and cannot read what others have enqueued.
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
    -- `freehold migrate` says "create schema if not exists", which asks for this right first.
    execute format('grant create on database %I to freehold_owner', current_database());
end
$$;

create schema if not exists freehold authorization freehold_owner;
revoke all on schema freehold from public;
grant usage on schema freehold to freehold_worker, freehold_producer, freehold_viewer;

-- What is there already, and what later migrations of the owner will add.
grant select on all tables in schema freehold to freehold_worker, freehold_viewer;
grant insert, update, delete on all tables in schema freehold to freehold_worker;
grant usage on all sequences in schema freehold to freehold_worker;
alter default privileges for role freehold_owner in schema freehold
    grant select on tables to freehold_worker, freehold_viewer;
alter default privileges for role freehold_owner in schema freehold
    grant insert, update, delete on tables to freehold_worker;
alter default privileges for role freehold_owner in schema freehold
    grant usage on sequences to freehold_worker;

-- Names that exist only once the schema is migrated.
do $$
begin
    if to_regclass('freehold.job') is null then
        raise notice 'freehold is not migrated yet: migrate as its owner, then run this again';
        return;
    end if;
    -- The versions of the schema are the owner's to write.
    revoke insert, update, delete on freehold.migration from freehold_worker;
    grant execute on function freehold.turn_days(double precision, integer) to freehold_worker;
    -- Enough to store a job and to find who holds a key; no arguments, no owners, no history.
    grant insert on freehold.job to freehold_producer;
    grant select (id, created_at, unique_key, stage) on freehold.job to freehold_producer;
    -- When workers were last told of something, and that they were.
    grant select, insert, update on freehold.told to freehold_producer;
    grant select, insert, update, delete on freehold.idempotency to freehold_producer;
    grant usage on sequence freehold.job_id to freehold_producer;
    grant select on freehold.migration to freehold_producer;
end
$$;
