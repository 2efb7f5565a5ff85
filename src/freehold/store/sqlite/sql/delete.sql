delete from event where job_id = :id
    and not exists (select 1 from job where id = :id and stage = 'h');

delete from note where job_id = :id
    and not exists (select 1 from job where id = :id and stage = 'h');

delete from job where id = :id and stage <> 'h' returning id;

delete from history where id = :id returning id
