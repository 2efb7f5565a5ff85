-- How far retention has looked for steps of deleted jobs, and the time.
select clock(), s.scanned_to, s.at, s.job_id from (select 1) t left join step_scan s
