-- Four roles for a schema called leasehold. Run it as the database's administrator, before the
-- first `leasehold migrate` and again after each: it can be repeated. Then make users of yours
-- members, and let each part connect as its own:
--   create role shop_worker login password '…' in role leasehold_worker;
-- Whoever migrates must act as the owner, so that all tables belong to one:
--   create role shop_owner login password '…' in role leasehold_owner;
--   alter role shop_owner set role = leasehold_owner;

-- Owner: owns the schema and migrates it. No program that runs all day needs it.
-- Worker: runs jobs, and operates on them: `leasehold worker`, `up` and the HTTP API.
-- Producer: enqueues, and cannot read what others have enqueued.
-- Viewer: reads everything, job arguments included: `top`, `jobs`, reports, autoscalers.
do $$
declare
    role text;
begin
    foreach role in array array['leasehold_owner', 'leasehold_worker', 'leasehold_producer',
                                'leasehold_viewer'] loop
        if not exists (select from pg_roles where rolname = role) then
            execute format('create role %I nologin', role);
        end if;
    end loop;
    -- `leasehold migrate` says "create schema if not exists", which asks for this right first.
    execute format('grant create on database %I to leasehold_owner', current_database());
end
$$;

create schema if not exists leasehold authorization leasehold_owner;
revoke all on schema leasehold from public;
grant usage on schema leasehold to leasehold_worker, leasehold_producer, leasehold_viewer;

-- What is there already, and what later migrations of the owner will add.
grant select on all tables in schema leasehold to leasehold_worker, leasehold_viewer;
grant insert, update, delete on all tables in schema leasehold to leasehold_worker;
grant usage on all sequences in schema leasehold to leasehold_worker;
alter default privileges for role leasehold_owner in schema leasehold
    grant select on tables to leasehold_worker, leasehold_viewer;
alter default privileges for role leasehold_owner in schema leasehold
    grant insert, update, delete on tables to leasehold_worker;
alter default privileges for role leasehold_owner in schema leasehold
    grant usage on sequences to leasehold_worker;

-- Names that exist only once the schema is migrated.
do $$
begin
    if to_regclass('leasehold.job') is null then
        raise notice 'leasehold is not migrated yet: migrate as its owner, then run this again';
        return;
    end if;
    -- The versions of the schema are the owner's to write.
    revoke insert, update, delete on leasehold.migration from leasehold_worker;
    grant execute on function leasehold.turn_days(double precision, integer) to leasehold_worker;
    -- Enough to store a job and to find who holds a key; no arguments, no owners, no history.
    grant insert on leasehold.job to leasehold_producer;
    grant select (id, created_at, unique_key, stage) on leasehold.job to leasehold_producer;
    -- When workers were last told of something, and that they were.
    grant select, insert, update on leasehold.told to leasehold_producer;
    grant select, insert, update, delete on leasehold.idempotency to leasehold_producer;
    grant usage on sequence leasehold.job_id to leasehold_producer;
    grant select on leasehold.migration to leasehold_producer;
end
$$;
