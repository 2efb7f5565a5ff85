-- Wakes the jobs that wait for signals. Runs after `lock_signals`, so that its snapshot has every wait that did
-- not see the signal.
with given as (
    select name from json_to_recordset(:rows::json) as g(name text)
),
found as materialized (
    select w.id from given g
    cross join lateral (
        select j.id from {schema}.job j
        where j.lease_owner is null and j.waits_for = 'signal/' || g.name and j.waits_for is not null
          and coalesce(j.stage in ({scheduled}, {backoff}), false)  -- hidden from the index `job_due`
        order by j.waits_for limit 1000) w
),
waiting as materialized (
    select id from {schema}.job
    where id = any (array(select id from found)) and coalesce(stage in ({scheduled}, {backoff}), false)
      and waits_for = any (array(select 'signal/' || name from given))
    order by id for update
),
woken as (
    update {schema}.job
    set stage = case when stage = {backoff} then {lane_head} else {ready} end, run_at = {schema}.clock()
    where id = any (array(select id from waiting))
    returning id, queue
),
done as (
    update {schema}.signal set delivered = true where name = any (array(select name from given)) and not delivered
      -- With more waiting jobs the next sweep goes on.
      and (select count(*) from found) < 1000
),
notified as materialized (
    select pg_notify('freehold_{schema}', '+' || queue) from (select distinct queue from woken) q
)
select id from woken where (select count(*) from notified) > 0
