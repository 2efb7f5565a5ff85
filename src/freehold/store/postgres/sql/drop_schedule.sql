with given as (
    select * from json_to_recordset(:rows::json) as g(
        name text, by text, via text, verb text, reason text, before text, after text)
),
changed as (
    delete from {schema}.schedule where name = any (array(select name from given)) returning name
),
recorded as (
    {record_schedules}
)
select name from changed
