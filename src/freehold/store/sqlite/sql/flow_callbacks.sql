select moment, job, job_id from flow_callback where flow = :flow order by moment
