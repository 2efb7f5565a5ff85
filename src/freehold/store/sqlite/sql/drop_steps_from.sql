-- properties: not_notified
-- Deletes a step and the later ones of a job that runs again from there, with the guard of the statement that
-- queues it again: without it no step goes.
delete from step where job_id = :id
    and number >= (select number from step where job_id = :id and name = :step)
    and (exists (select 1 from job where id = :id and stage = :seen_stage)
        or exists (select 1 from history where :seen_stage is null and id = :id and state = :seen_state))
