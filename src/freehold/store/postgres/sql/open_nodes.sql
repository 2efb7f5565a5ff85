-- Nodes whose sources have ended enter their queues, if they still wait.
with given as (
    select * from json_to_recordset(:rows::json) as g(number integer, id bigint, args text)
),
waiting as materialized (
    select j.id from {schema}.job j
    where j.id = any (array(select id from given)) and j.stage = {pending}
      and coalesce(j.waits_for = 'flow/' || :flow::text, false)  -- hidden from the index `job_stop_or_wait`
    order by j.id for update
),
opened as (
    update {schema}.job j
    set stage = case when j.run_at > {schema}.clock() then {scheduled} else {ready} end, waits_for = null,
        args = coalesce(g.args::json, j.args)
    from given g
    where j.id = any (array(select id from waiting)) and g.id = j.id
    returning j.id, j.queue
),
released as (
    update {schema}.flow_node n set waits = false
    from given g
    -- Nodes after jobs: the order of all locks.
    where n.flow = :flow::bigint and n.number = any (array(select number from given)) and n.number = g.number
      and n.waits and (select count(*) from opened) >= 0
),
notified as materialized (
    select pg_notify('freehold_{schema}', '+' || queue) from (select distinct queue from opened) q
)
select id from opened where (select count(*) from notified) > 0
