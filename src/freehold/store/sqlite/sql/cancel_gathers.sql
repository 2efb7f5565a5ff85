-- What a job gathered is canceled if it has ended, or blocks its lane, and has not waited for it.
insert into flow_end (flow, cancels)
select f.id, 1 from flow f
where f.parent_job = :id and f.parent_job is not null and f.closed_at is null
    and not exists (select 1 from job j where j.id = :id and j.stage <> {failed})
