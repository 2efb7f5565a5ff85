-- A callback that the database refuses to store must not hold up the sweeps. No job has the id 0.
update {schema}.flow_callback set job_id = 0
where flow = :flow::bigint and moment = :moment::text and job_id is null
returning flow
