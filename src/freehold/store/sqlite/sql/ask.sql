-- Leave a request for the owner. A cancel outweighs a pause; asking twice changes nothing.
insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), attempt, :event,
    case when started_at is null then 'assigned' else 'running' end, :by, :reason
from job
where id = :id and stage = 'h' and lease_token = :token
  and (request is null or (request = 'p' and :request = 'c'));

update job set request = :request, request_by = :by, request_reason = :reason
where id = :id and stage = 'h' and lease_token = :token
  and (request is null or (request = 'p' and :request = 'c'));

select id from job where id = :id and stage = 'h' and lease_token = :token
