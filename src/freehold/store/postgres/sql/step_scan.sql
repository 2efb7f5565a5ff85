-- How far retention has looked for steps of deleted jobs, and the time.
select {schema}.clock(), s.scanned_to, s.at, s.job_id from (select) t left join {schema}.step_scan s on true
