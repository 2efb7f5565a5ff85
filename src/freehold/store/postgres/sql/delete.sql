with given as (
    select id from json_to_recordset(:rows::json) as g(id bigint)
),
locked as materialized (
    select id from {schema}.job
    where id = any (array(select id from given)) and stage <> {leased}
    order by id for update
),
live as (
    delete from {schema}.job where id = any (array(select id from locked)) returning id
),
finished as (
    delete from {schema}.history where id = any (array(select id from given)) returning id
),
deleted_events as (
    delete from {schema}.event
    where job_id = any (array(select id from live union all select id from finished))
),
noted as (
    delete from {schema}.job_log
    where job_id = any (array(select id from live union all select id from finished))
)
select id from live union all select id from finished
