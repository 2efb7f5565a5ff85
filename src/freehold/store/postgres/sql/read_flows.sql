with given as (
    select id from json_to_recordset(:rows::json) as g(id bigint)
)
select {flow_columns} from {schema}.flow f where f.id = any (array(select id from given)) order by f.id
