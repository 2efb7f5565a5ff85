-- properties: not_notified
-- Steps older than the history, of jobs that are gone. A finished job keeps its steps: it can be run again.
delete from step where (job_id, name) in (
    select s.job_id, s.name from step s where s.at < clock() - cast(:history_days * 86400000000 as integer)
    and not exists (select 1 from job j where j.id = s.job_id)
    and not exists (select 1 from history h where h.id = s.job_id)
    order by s.at limit :limit)
returning 1
