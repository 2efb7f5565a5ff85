-- What became of the jobs of a step, counted after its changes, in the same transaction: each change has left
-- an event by this author, which no other event has. A deleted job is gone.
update bulk_step
set done = case when :event = 'deleted' then (
        select count(*) from json_each(:ids) i
        where not exists (select 1 from job where id = i.value)
          and not exists (select 1 from history where id = i.value))
        else (
        select count(distinct job_id) from event
        where job_id in (select value from json_each(:ids)) and by = :by and kind = :event) end,
    requested = (
        select count(distinct job_id) from event
        where job_id in (select value from json_each(:ids)) and by = :by and kind = :request_event),
    already = :already, refused = :refused
where operation = :operation and number = :number;

update bulk_step set changed = :changed + json_array_length(:ids) - done - requested
where operation = :operation and number = :number
