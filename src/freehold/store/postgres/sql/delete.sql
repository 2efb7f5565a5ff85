-- Removes jobs that are as they were read, with their steps, events and log lines; never a leased one.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, seen_stage "char", seen_state text)
),
locked as materialized (
    select j.id from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given)) and j.stage = g.seen_stage and j.stage <> {leased}
    order by j.id for update of j
),
live as (
    delete from {schema}.job where id = any (array(select id from locked)) returning id
),
finished as (
    delete from {schema}.history h using given g
    where h.id = any (array(select id from given where seen_stage is null)) and g.id = h.id
      and h.state = g.seen_state
    returning h.id
),
deleted_events as (
    delete from {schema}.event
    where job_id = any (array(select id from live union all select id from finished))
),
noted as (
    delete from {schema}.job_log
    where job_id = any (array(select id from live union all select id from finished))
),
forgotten as (
    delete from {schema}.step
    where job_id = any (array(select id from live union all select id from finished))
)
select id from live union all select id from finished
