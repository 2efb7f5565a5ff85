-- The limit of all queues of a control schema (its row '*' in `queue`) holds over all tenants of this
-- database. `at_most` is never less than what a schema has leased: what was counted last, and what was
-- granted since. Only a grant can add to it, and grants take turns; so only where the sum leaves too
-- little room is anybody counted again. Used in the control schema only.
create table {schema}.lease_bound (
    schema      text primary key,
    at_most     integer not null,
    counted_at  timestamptz not null,
    refused_at  timestamptz,             -- since then it was given nothing
    asked_at    timestamptz              -- when it did so last
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

-- What a schema has leased just now. What is gone has nothing; one that is locked, or cannot be read,
-- may have as much as before.
create function {schema}.leased_in(other text, at_most integer) returns integer
    language plpgsql volatile
    set lock_timeout = '20ms'
    set search_path = pg_catalog
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

-- How many leases a schema may take now, of so many as are ready; null: there is no limit; -1: nothing
-- is ready. Nobody waits: while another one counts, there are none. Each statement of a volatile
-- function sees what was committed before it, and so everything that was granted under the lock.
--
-- Its own leases are counted first, then those not counted for longest; all in all not more often than
-- one in two milliseconds, however many tenants there are. Who ends a job and asks again at once would
-- always come before those that were refused: so one lease is kept for whoever has asked in vain
-- for two seconds, and longest. One, because it may be a second until they ask again.
create function {schema}.grant_leases(asking text, wanted integer) returns integer
    language plpgsql volatile
    set search_path = pg_catalog
    as $$
declare
    now     timestamptz := clock_timestamp();
    own     {schema}.lease_bound;
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
    room := room - (select coalesce(sum(at_most), 0) from {schema}.lease_bound);
    select * into own from {schema}.lease_bound where schema = asking;
    own.at_most := coalesce(own.at_most, 0);
    kept := (select count(*) from (
        select from {schema}.lease_bound b
        where b.schema <> asking and b.refused_at < coalesce(own.refused_at, now)
          and b.refused_at < now - interval '2 s' and b.asked_at > now - interval '3 s'
        limit 1) first);
    if room < wanted + kept and own.at_most > 0 then
        live := {schema}.leased_in(asking, own.at_most);
        room := room + own.at_most - live;
        own.at_most := live;
        own.counted_at := now;
    end if;
    if room < wanted + kept then
        for other in
            select b.schema, b.at_most from {schema}.lease_bound b
            where b.schema <> asking and b.at_most > 0
              and (b.at_most = 1000000 or b.counted_at < now - interval '2 ms' * (
                  select greatest(10, count(*)) from {schema}.lease_bound where at_most > 0))
            order by b.counted_at
        loop
            live := {schema}.leased_in(other.schema, other.at_most);
            room := room + other.at_most - live;
            update {schema}.lease_bound b set at_most = live, counted_at = clock_timestamp()
                where b.schema = other.schema;
            exit when room >= wanted + kept;
        end loop;
    end if;
    granted := greatest(0, least(wanted, room - kept));
    insert into {schema}.lease_bound as b (schema, at_most, counted_at, refused_at, asked_at)
        values (asking, own.at_most + granted, coalesce(own.counted_at, now),
            case when granted = 0 then coalesce(own.refused_at, now) end, now)
        on conflict (schema) do update
        set at_most = excluded.at_most, counted_at = excluded.counted_at,
            refused_at = excluded.refused_at, asked_at = excluded.asked_at;
    return granted;
end
$$;

-- Who holds how many of them. For people: counted at this moment, without a lock.
create function {schema}.leases_by_schema() returns table (schema text, live integer)
    language sql volatile
    set search_path = pg_catalog
    as $$
    select b.schema, {schema}.leased_in(b.schema, b.at_most) from {schema}.lease_bound b
    where b.at_most > 0
    $$;

-- A limit from before this: nobody knows yet what its tenants have leased.
insert into {schema}.lease_bound (schema, at_most, counted_at)
    select nspname, 1000000, now() from pg_namespace
    where (nspname = '{schema}' or starts_with(nspname, '{schema}_t_'))
      and exists (select from {schema}.queue where name = '*' and max_leases is not null);
