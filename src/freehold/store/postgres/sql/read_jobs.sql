with given as (
    select id from json_to_recordset(:rows::json) as g(id bigint)
)
select {job_columns} from {schema}.job j where j.id = any (array(select id from given))
union all
select {history_columns} from {schema}.history h where h.id = any (array(select id from given))
