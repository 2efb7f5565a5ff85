-- Jobs that hold a key until a worker takes them. A throttle chooses the time itself.
with given as materialized (
    select nextval('{schema}.job_id') as id, g.*, t.now
    from json_to_recordset(:rows::json) as g(
        position integer, task text, queue text, priority smallint, args text,
        max_attempts smallint, pending boolean, run_at timestamptz, delay_seconds double precision,
        target text, limit_key text, timeout_seconds real, tags text, policy text, meta text,
        waiting_key text),
        (select {schema}.clock() as now) t
),
timed as (
    select g.*, case when :throttled::boolean
            then greatest(g.now, (select w.next_at from {schema}.throttle w where w.key = g.waiting_key))
            else coalesce(g.run_at, g.now + make_interval(secs => g.delay_seconds)) end as due_at
    from given g
),
stored as (
    insert into {schema}.job as j (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, tags, policy, args, meta, waiting_key)
    select id, now, due_at,
           case when pending then {pending} when due_at > now then {scheduled} else {ready} end,
           priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
           tags::json, policy::json, args::json, meta::json, waiting_key
    from timed
    -- One order for all writers of keys, so that they never deadlock.
    order by waiting_key
    on conflict (waiting_key) where waiting_key is not null and stage <> {leased}
