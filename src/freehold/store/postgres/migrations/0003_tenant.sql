-- The directory of tenants. Only that of the control schema is used: tenants live in schemas of
-- their own, `<control schema>_t_<tenant>`, here or on another server.
create table {schema}.tenant (
    name       text primary key,
    place      text not null,                -- a name in the settings; 'home': beside this table
    state      text not null check (state in ('active','paused','moving','degraded')),
    weight     real not null default 1 check (weight > 0),
    max_slots  integer check (max_slots >= 1),
    created_at timestamptz not null,
    note       text,                         -- who paused it and why, or what is broken
    moving_to  text,                         -- the place, while it moves
    moved_from text,                         -- the place that still has what was left behind
    constraint tenant_moving check ((state = 'moving') = (moving_to is not null))
);

-- Is there anything to do? An idle tenant answers with one statement, each part of which is a probe
-- of an index, because `awake` has set the planner so.
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
declare
    at timestamptz := {schema}.clock();
    in_queue text;
begin
    if not (exists (select from {schema}.job where stage = 'h')
            or exists (select from {schema}.job where coalesce(stage in ('r','R'), false))
            or exists (select from {schema}.job where stage in ('w','b') and run_at <= at)
            or exists (select from {schema}.job where stage = 'l')
            or exists (select from {schema}.lane where paused_until <= at)) then
        return false;
    end if;
    -- A lease that has run out is taken back even where nothing may start.
    in_queue := (select min(queue) from {schema}.job where stage = 'h');
    while in_queue is not null loop
        if exists (select from {schema}.job
                   where stage = 'h' and queue = in_queue and lease_expires_at <= at) then
            return true;
        end if;
        in_queue := (select min(queue) from {schema}.job where stage = 'h' and queue > in_queue);
    end loop;
    if exists (select from {schema}.queue where name = '*' and paused_at is not null
               and coalesce(paused_until > at, true)) then
        return false;
    end if;
    -- Due; or it waited for its limit_key, or its lane, until somebody looks again.
    if exists (select from {schema}.job where stage in ('w','b') and run_at <= at)
        or exists (select from {schema}.job where stage = 'l')
        or exists (select from {schema}.lane where paused_until <= at) then
        return true;
    end if;
    -- Ready, in a queue that is not paused.
    in_queue := (select queue from {schema}.job
                 where coalesce(stage in ('r','R'), false) order by queue limit 1);
    while in_queue is not null loop
        if not exists (select from {schema}.queue where name = in_queue
                       and paused_at is not null and coalesce(paused_until > at, true)) then
            return true;
        end if;
        in_queue := (select queue from {schema}.job
                     where coalesce(stage in ('r','R'), false) and queue > in_queue
                     order by queue limit 1);
    end loop;
    return false;
end
$$;

-- Asks many schemas at once. What is broken in one is told, and is nobody else's trouble; one that
-- is locked just now is asked again next time.
create function {schema}.awake(schemas text[])
    returns table (schema text, has_work boolean, trouble text)
    language plpgsql volatile
    set lock_timeout = '20ms'
    set search_path = pg_catalog
    set enable_bitmapscan = off
    set enable_seqscan = off
    -- Or each of hundreds of schemas is planned anew the first five times.
    set plan_cache_mode = force_generic_plan
    as $$
begin
    foreach schema in array schemas loop
        trouble := null;
        begin
            execute format('select %I.has_work()', schema) into has_work;
        exception
            when lock_not_available then
                has_work := false;
            when others then
                has_work := false;
                trouble := sqlerrm;
        end;
        return next;
    end loop;
end
$$;
