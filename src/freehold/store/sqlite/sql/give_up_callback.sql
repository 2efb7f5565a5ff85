-- A callback that the database refuses to store must not hold up the sweeps. No job has the id 0.
update flow_callback set job_id = 0
where flow = :flow and moment = :moment and job_id is null
returning flow
