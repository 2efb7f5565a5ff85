-- Wakes the job that waits for a gather. Runs after `lock_signals`, so that its snapshot has a wait that did not
-- see the end.
with waiting as materialized (
    select j.id from {schema}.job j
    where j.lease_owner is null and j.waits_for = 'gather/' || :flow::text and j.waits_for is not null
      and coalesce(j.stage in ({scheduled}, {backoff}), false)  -- hidden from the index `job_due`
    for update  -- of one job; an order by id would be read from the primary key
),
woken as (
    update {schema}.job
    set stage = case when stage = {backoff} then {lane_head} else {ready} end, run_at = {schema}.clock()
    where id = any (array(select id from waiting))
    returning id, queue
),
notified as materialized (
    select pg_notify('freehold_{schema}', '+' || queue) from (select distinct queue from woken) q
)
select id from woken where (select count(*) from notified) > 0
