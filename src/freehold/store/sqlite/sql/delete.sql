delete from event where job_id = :id
    and not exists (select 1 from job where id = :id and stage = {leased});

delete from job_log where job_id = :id
    and not exists (select 1 from job where id = :id and stage = {leased});

delete from job where id = :id and stage <> {leased} returning id;

delete from history where id = :id returning id
