-- A worker whose code fits the arguments of these jobs has started, or they have waited long enough. Their
-- `parked_until` stays: an older worker may claim them first, and park them again.
with back as (
    update {schema}.job
    set stage = case when target is null then {ready} else {lane_head} end, reason = null
    where id = any (array(
        select id from {schema}.job
        where id = any (array(select id from json_to_recordset(:rows::json) as g(id bigint))) and stage = {parked} and parked_until is not null
        for update skip locked))
    returning id, attempt
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state)
    select id, {schema}.clock(), attempt, 'unparked', 'queued' from back
)
select id from back
