-- Jobs without keys: nothing to ask anybody, so nothing to wait for.
with given as (
    -- Ids are drawn in the caller's order: first asked, first served.
    select nextval('{schema}.job_id') as id, g.*
    from json_to_recordset(:rows::json) as g(
        place integer, task text, queue text, priority smallint, args text,
        max_attempts smallint, pending boolean, run_at timestamptz, delay_seconds double precision,
        target text, limit_key text, unique_key text, timeout_seconds real, tags text, policy text)
),
timed as (
    select given.*, t.now,
           coalesce(run_at, t.now + make_interval(secs => delay_seconds)) as due_at,
           -- Of jobs that enter a lane together, the first stands for all: they become visible
           -- together, so the lane always has somebody ready.
           case when target is null then 1
                else row_number() over (partition by target,
                        coalesce(run_at > t.now, delay_seconds > 0, false) or pending order by id)
           end as lane_place
    from given, (select {schema}.clock() as now) t
),
born as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, tags, policy, args)
    select id, now, due_at,
           case when pending then 'n' when due_at > now then 'w'
                when lane_place > 1 then 'f' else 'r' end,
           priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
           tags::json, policy::json, args::json
    from timed
)
select place, id from given
