insert into {schema}.flow_callback (flow, moment, job)
select flow, moment, job::json from json_to_recordset(:rows::json) as g(flow bigint, moment text, job text)
