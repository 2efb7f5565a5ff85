-- Scans the next jobs of one day, and deletes those of the rule with their events, log lines and steps.
-- Returns how many were scanned, and how many deleted.
select (select count(*) from ({scanned_jobs})), (select count(*) from ({expired_jobs}));

update retention_rule
set scanned_to = case when e.scanned < :window then :next_day else :day end,
    scanned_id = case when e.scanned < :window then 0 else e.last_id end
from (select count(*) as scanned, max(id) as last_id from ({scanned_jobs})) e
where kind = :kind and name = :name;

delete from event where job_id in ({expired_jobs});

delete from job_log where job_id in ({expired_jobs});

delete from step where job_id in ({expired_jobs});

delete from history where id in ({expired_jobs})
