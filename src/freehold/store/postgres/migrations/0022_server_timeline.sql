-- A promoted standby that lacks the latest commits would draw ids and tokens again that were given before. The
-- number of its timeline is new, so that its sequences can be moved on before anything is drawn: see decision 47.

-- The timeline that the sequences belong to; 0 is unknown. A sequence, because its value is changed at once and
-- for all transactions: no transaction, however long, keeps another one waiting for it.
create sequence {schema}.server_timeline minvalue 0 start 0;

-- Null if the server does not report it.
create function {schema}.present_timeline() returns bigint
    language plpgsql stable
    set search_path = pg_catalog, pg_temp
    as $$
begin
    return ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
exception when others then
    return null;
end
$$;

-- Moves every sequence of the schema on by a million. To be called by hand where the timeline is not known.
create function {schema}.advance_sequences() returns void
    language plpgsql
    set search_path = pg_catalog, pg_temp
    as $$
declare
    sequence regclass;
begin
    for sequence in
        select c.oid from pg_class c
        where c.relnamespace = '{schema}'::regnamespace and c.relkind = 'S' and c.relname <> 'server_timeline'
    loop
        perform setval(sequence, nextval(sequence) + 1000000);
    end loop;
end
$$;
revoke execute on function {schema}.advance_sequences() from public;

-- Called before the first number is drawn on a connection. Runs as the owner, because producers may not move
-- sequences; all that a caller can achieve is one move for each promotion. Returns the server's process, by which a
-- client recognizes a pooler. The lock is released before the end: it waits for no transaction either.
create function {schema}.check_timeline() returns integer
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    as $$
declare
    lock_key constant bigint := hashtextextended('{schema}.server_timeline', 0);
    present bigint;
begin
    if pg_is_in_recovery() then
        raise read_only_sql_transaction using message = 'a standby takes no writes';
    end if;
    present := {schema}.present_timeline();
    if present <> (select last_value from {schema}.server_timeline) then
        begin
            perform pg_advisory_lock(lock_key);
            if present <> (select last_value from {schema}.server_timeline) then
                perform {schema}.advance_sequences();
                perform setval('{schema}.server_timeline', present);
            end if;
        exception when query_canceled or others then
            perform pg_advisory_unlock(lock_key);
            raise;
        end;
        perform pg_advisory_unlock(lock_key);
    end if;
    return pg_backend_pid();
end
$$;

-- For connections that are not Freehold's own, and for the function `enqueue`.
create function {schema}.next_number(sequence regclass) returns bigint
    language plpgsql
    as $$
begin
    perform {schema}.check_timeline();
    return pg_catalog.nextval(sequence);
end
$$;

do $$
declare
    function regprocedure;
begin
    for function in
        select p.oid from pg_catalog.pg_proc p
        where p.pronamespace = '{schema}'::regnamespace and p.proname in ('enqueue', 'enqueue_waiting')
    loop
        execute replace(pg_catalog.pg_get_functiondef(function), 'nextval(''{schema}.job_id'')',
                        '{schema}.next_number(''{schema}.job_id'')');
    end loop;
end
$$;

select setval('{schema}.server_timeline', coalesce({schema}.present_timeline(), 0));
