-- A worker that knows these tasks has started: their jobs are ready again.
with back as (
    update {schema}.job
    set stage = case when target is null then {ready} else {lane_head} end, reason = null
    where id = any (array(
        select id from {schema}.job
        where stage = {parked} and task = any (:tasks::text[]) and parked_until is null
        limit :limit::integer
        for update skip locked))
    returning id, attempt
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state)
    select id, {schema}.clock(), attempt, 'unparked', 'queued' from back
)
select id from back
