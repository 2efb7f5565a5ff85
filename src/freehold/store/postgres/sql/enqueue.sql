-- Jobs without keys: no other transaction can make this one wait.
with given as (
    -- Ids are drawn in the caller's order, which is the order of claiming.
    select nextval('{schema}.job_id') as id, g.*
    from json_to_recordset(:rows::json) as g(
        task text, queue text, priority smallint, args text,
        max_attempts smallint, pending boolean, run_at timestamptz, delay_seconds double precision,
        target text, limit_key text, unique_key text, timeout_seconds real, tags text, policy text,
        follows boolean)
),
timed as (
    select given.*, t.now, coalesce(run_at, t.now + make_interval(secs => delay_seconds)) as due_at
    from given, (select {schema}.clock() as now) t
),
inserted as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, tags, policy, args)
    select id, now, due_at,
           case when pending then {pending} when due_at > now then {scheduled} when follows then {follower} else {ready} end,
           priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
           tags::json, policy::json, args::json
    from timed
)
select id from given
