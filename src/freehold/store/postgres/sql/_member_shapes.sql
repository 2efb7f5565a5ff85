-- What members have in common, all but their arguments: see `enqueue`.
timed as (
    select s.*, t.now, coalesce(s.run_at, t.now + make_interval(secs => s.delay_seconds)) as due_at
    from json_to_recordset(:rows::json) as s(
        number integer, task text, queue text, priority smallint, max_attempts smallint,
        pending boolean, run_at timestamptz, delay_seconds double precision, target text,
        limit_key text, timeout_seconds real, tags text, policy text, meta text, follows boolean,
        start_by timestamptz, start_by_seconds double precision),
        (select {schema}.clock() as now) t
),
shape as materialized (
    select timed.*, case when due_at > now then {scheduled}
                         when follows then {follower} else {ready} end as stage,
        coalesce(start_by, greatest(due_at, now) + make_interval(secs => start_by_seconds)) as starts_by
    from timed
)
