select e.job_id from ({examined_steps}) e
where not exists (select 1 from job j where j.id = e.job_id)
and not exists (select 1 from history h where h.id = e.job_id)
