-- Out of the live table, into history.
given as (
    select * from json_to_recordset(:rows::json)
        as g(id bigint, token bigint, result text, ran_seconds double precision)
),
held as materialized (
    {lease_holds} for update of j
),
gone as (
    delete from {schema}.job where id = any (array(select id from held)) returning *
),
kept as (
    insert into {schema}.history (id, created_at, run_at, leased_at, started_at, finished_at,
        token, timeout_seconds, priority, attempt, max_attempts, lost_attempts, state, queue, task, finished_by,
        target, limit_key, unique_key, tags, policy, result, progress, args, meta)
    select o.id, o.created_at, o.run_at, o.leased_at,
        coalesce(o.started_at, t.now - make_interval(secs => g.ran_seconds)), t.now,
        o.lease_token, o.timeout_seconds, o.priority, o.attempt, o.max_attempts, o.lost_attempts,
        'succeeded', o.queue, o.task, o.lease_owner, o.target, o.limit_key, o.unique_key, o.tags,
        o.policy, g.result::json, o.progress, o.args, o.meta
    from gone o join given g on g.id = o.id and g.token = o.lease_token, (select {schema}.clock() as now) t
)
