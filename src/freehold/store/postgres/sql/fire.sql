-- The ticks of schedules become jobs, if each schedule is as it was read. Both happen in this statement:
-- after a crash there is the job and the moved schedule, or neither.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        name text, key text, seen_at timestamptz, seen_edit integer, next_at timestamptz,
        counted_to timestamptz, missed integer, problem text, first_tick timestamptz,
        last_tick timestamptz, ticks json)
),
held as materialized (
    -- A schedule that another sweep is just firing is that one's. Found by its name: at midnight
    -- thousands have one `next_at`, whose index "is not distinct" cannot use.
    select g.name from given g
    cross join lateral (
        select from {schema}.schedule s
        where s.name = g.name and s.next_at is not distinct from g.seen_at and s.edit = g.seen_edit
        limit 1 for update of s skip locked) s
),
drawn as materialized (
    -- Ids are drawn in the order of the ticks, which is the order of claiming.
    select nextval('{schema}.job_id') as id, tick.*, t.now,
        timestamptz 'epoch' + run_at_micros * interval '1 microsecond' as due_at
    from (
        select g.name, each.*
        from given g join held using (name)
        cross join lateral json_to_recordset(g.ticks) as each(
            number integer, task text, queue text, priority smallint, args text,
            max_attempts smallint, run_at_micros bigint, target text, limit_key text,
            unique_key text, timeout_seconds real, tags text, policy text, meta text,
            start_by_seconds double precision)
        order by g.name, each.number) tick,
        (select {schema}.clock() as now) t
),
inserted as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, args, meta, start_by)
    select id, now, due_at, case when due_at > now then {scheduled} else {ready} end,
           priority, max_attempts, timeout_seconds, queue, task, target, limit_key, unique_key,
           tags::json, policy::json, args::json, meta::json,
           greatest(due_at, now) + make_interval(secs => start_by_seconds)
    from drawn
    -- The order of all writers of keys, so that they never deadlock.
    order by unique_key, id
    on conflict (unique_key) where unique_key is not null and stage <> {failed} do nothing
    returning id
),
made as materialized (
    select drawn.name, count(*) as ticks, count(inserted.id) as fired, max(inserted.id) as last_job
    from drawn left join inserted using (id)
    group by drawn.name
),
moved as (
    update {schema}.schedule s
    set next_at = g.next_at, counted_to = g.counted_to, problem = g.problem,
        missed = s.missed + g.missed,
        fired = s.fired + coalesce(m.fired, 0),
        last_job = coalesce(m.last_job, s.last_job),
        last_at = case when coalesce(m.fired, 0) = 0 then s.last_at
                       when m.fired = m.ticks then g.last_tick else g.first_tick end,
        skipped = s.skipped + coalesce(m.ticks - m.fired, 0),
        skipped_at = case when m.ticks > m.fired then {schema}.clock() else s.skipped_at end,
        -- A job of this statement is not visible here: it is the last one.
        skipped_for = case when m.ticks > m.fired then coalesce(
                (select j.id from {schema}.job j where j.unique_key = g.key and j.stage <> {failed}), m.last_job)
            else s.skipped_for end,
        paused_at = null, paused_by = null, pause_reason = null, paused_until = null
    from held h join given g using (name) left join made m using (name)
    where s.name = h.name and s.name = any (array(select name from held))
    returning s.name
)
select name, null::bigint as id from moved
union all
select drawn.name, inserted.id from inserted join drawn using (id)
