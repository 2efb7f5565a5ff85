-- The newest unsuccessful jobs, and the failed ones that block their lanes, whose error is in their
-- last event. Every row begins with how many were examined; a row without an id has no failure.
with unsuccessful as materialized (
    select id, state, task, reason, finished_at as at, error ->> 'type' as type,
        left(error ->> 'message', 500) as message
    from {schema}.history where state <> 'succeeded' order by id desc limit :limit::integer
),
attention as materialized (
    select id, stage, task, reason, created_at from {schema}.job
    where stage in ({pending}, {paused}, {paused_follower}, {failed}) order by id desc limit :live::integer
),
failed as (
    select id, task, type, coalesce(message, reason) as message, at from unsuccessful
    where state = 'failed'
    union all
    select j.id, j.task, e.type, coalesce(e.message, j.reason), coalesce(e.at, j.created_at)
    from attention j
    left join lateral (
        select error ->> 'type' as type, left(error ->> 'message', 500) as message, at
        from {schema}.event where job_id = j.id and error is not null order by id desc limit 1) e on true
    where j.stage = {failed}
    order by 1 desc limit :limit::integer
)
select n.examined, f.* from (
    select (select count(*) from unsuccessful) + (select count(*) from attention where stage = {failed})
        as examined) n
left join failed f on true
