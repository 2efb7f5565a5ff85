-- Removes a job that is as it was read, with its steps, events and log lines; never a leased one.
delete from event where job_id = :id
    and (exists (select 1 from job where id = :id and stage = :seen_stage and stage <> {leased})
        or exists (select 1 from history where :seen_stage is null and id = :id and state = :seen_state));

delete from job_log where job_id = :id
    and (exists (select 1 from job where id = :id and stage = :seen_stage and stage <> {leased})
        or exists (select 1 from history where :seen_stage is null and id = :id and state = :seen_state));

delete from step where job_id = :id
    and (exists (select 1 from job where id = :id and stage = :seen_stage and stage <> {leased})
        or exists (select 1 from history where :seen_stage is null and id = :id and state = :seen_state));

delete from job where id = :id and stage = :seen_stage and stage <> {leased} returning id;

delete from history where :seen_stage is null and id = :id and state = :seen_state returning id
