-- A worker that knows these tasks has started: their jobs are ready again.
with back as (
    update {schema}.job
    set stage = case when target is null then {ready} else {lane_head} end, reason = null
    where id = any (array(
        -- Task by task: before PostgreSQL 17 an array is compared with each entry of the stage.
        select p.id from unnest(:tasks::text[]) known (task) cross join lateral (
            select id from {schema}.job
            where stage = {parked} and task = known.task and parked_until is null
            limit :limit::integer
            for update skip locked) p
        limit :limit::integer))
    returning id, attempt
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state)
    select id, {schema}.clock(), attempt, 'unparked', 'queued' from back
)
select id from back
