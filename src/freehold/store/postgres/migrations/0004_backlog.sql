-- For whoever scales workers from outside: how many jobs can be claimed right now, in one queue or
-- in all of them, counted up to 10000. Of a paused queue, nothing. It reads the claim's index only.
create function {schema}.backlog(queue text default null) returns integer
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    with recursive ready_queue as (
        (select j.queue from {schema}.job j where backlog.queue is null
            and coalesce(j.stage in ('r','R'), false) order by j.queue limit 1)
        union all
        select (select j.queue from {schema}.job j
                where coalesce(j.stage in ('r','R'), false) and j.queue > q.queue
                order by j.queue limit 1)
        from ready_queue q where q.queue is not null
    ),
    asked as (
        select q.queue from ready_queue q where q.queue is not null
        union all
        select backlog.queue where backlog.queue is not null
    )
    select least(coalesce(sum({schema}.count_ready(a.queue, 10000)), 0), 10000)::integer
    from asked a
    where not exists (
        select from {schema}.queue p
        where p.name in (a.queue, '*') and p.paused_at is not null
          and coalesce(p.paused_until > {schema}.clock(), true))
    $$;

-- Workers need not own the tables whose days they turn; whoever may call this can drop history.
alter function {schema}.turn_days(double precision, integer) security definer;
revoke execute on function {schema}.turn_days(double precision, integer) from public;
