-- Members of a group whose sources have ended enter their queues.
with waiting as materialized (
    select j.id from {schema}.job j
    where j.waits_for = 'flow/' || :part::text and j.waits_for is not null and j.stage = {pending}
    limit :limit::integer for update skip locked
),
opened as (
    update {schema}.job j
    set stage = case when j.run_at > {schema}.clock() then {scheduled} else {ready} end, waits_for = null
    where j.id = any (array(select id from waiting))
    returning j.id, j.queue
),
notified as materialized (
    select pg_notify('freehold_{schema}', '+' || queue) from (select distinct queue from opened) q
)
select id from opened where (select count(*) from notified) > 0
