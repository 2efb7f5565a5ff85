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

-- A member that has not ended counts as canceled; one that has stays counted.
insert into flow_end (flow, node, canceled)
select {flow_of}, {node_of}, 1 from job
where id = :id and stage = :seen_stage and stage not in ({leased}, {failed}) and {flow_of} is not null;

insert into flow_end (flow, cancels)
select f.id, 1 from flow f
where f.parent_job = :id and f.parent_job is not null and f.closed_at is null
    and exists (select 1 from job where id = :id and stage = :seen_stage and stage <> {leased});

delete from job where id = :id and stage = :seen_stage and stage <> {leased} returning id;

delete from history where :seen_stage is null and id = :id and state = :seen_state returning id
