-- properties: not_notified
-- Scans the next steps that were written before a day, and deletes all steps of those jobs that are gone. A finished
-- job keeps its steps: it can be run again. Returns how many were scanned, and how many deleted.
select (select count(*) from ({examined_steps})), (select count(*) from step where job_id in ({gone_jobs}));

-- The next search begins with the oldest step again.
insert into step_scan (only_row, scanned_to, at, job_id)
select 1, iif(l.at is null, :day, :scanned_to), coalesce(l.at, 0), coalesce(l.job_id, 0)
from (select 1) t left join ({examined_steps} offset :window - 1) l
where true
on conflict (only_row) do update
set scanned_to = excluded.scanned_to, at = excluded.at, job_id = excluded.job_id;

delete from step where job_id in ({gone_jobs})
