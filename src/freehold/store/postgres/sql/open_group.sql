-- Members of a group whose sources have ended enter their queues. It waits for members that are locked, by an
-- amendment for example: one that is skipped would wait for ever.
with page as materialized (
    select j.id from {schema}.job j
    where j.lease_owner is null and j.waits_for = 'flow/' || :part::text and j.waits_for is not null
      and coalesce(j.stage = {pending}, false)  -- hidden from the index `job_attention`
    limit :limit::integer
),
waiting as materialized (
    select j.id from {schema}.job j
    where j.id = any (array(select id from page)) and j.stage = {pending}
      and coalesce(j.waits_for = 'flow/' || :part::text, false)  -- hidden from the index `job_stop_or_wait`
    order by j.id for update
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
