select moment, job::text, job_id from {schema}.flow_callback where flow = :flow::bigint order by moment
