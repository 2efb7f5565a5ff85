-- The newest unsuccessful jobs, and the failed ones that block their lanes, whose error is in their
-- last event. Every row begins with how many were examined; a row without an id has no failure.
with unsuccessful as materialized (
    select id, state, task, reason, finished_at as at,
        case when json_valid(error) then json_extract(error, '$.type') end as type,
        case when json_valid(error) then substr(json_extract(error, '$.message'), 1, 500) end as message
    from history where state <> 'succeeded' order by id desc limit :limit
),
attention as materialized (
    select id, stage, task, reason, created_at,
        case when stage = {failed} then (select e.id from event e
            where e.job_id = job.id and e.error is not null order by e.id desc limit 1) end as event_id
    from job where stage in ({pending}, {paused}, {paused_follower}, {failed}) order by id desc limit :live
),
failed as (
    select id, task, type, coalesce(message, reason) as message, at from unsuccessful
    where state = 'failed'
    union all
    select j.id, j.task, case when json_valid(e.error) then json_extract(e.error, '$.type') end,
        coalesce(case when json_valid(e.error) then substr(json_extract(e.error, '$.message'), 1, 500) end,
            j.reason),
        coalesce(e.at, j.created_at)
    from attention j left join event e on e.id = j.event_id
    where j.stage = {failed}
    order by 1 desc limit :limit
)
select n.examined, f.* from (
    select (select count(*) from unsuccessful) + (select count(*) from attention where stage = {failed})
        as examined) n
left join failed f on true
