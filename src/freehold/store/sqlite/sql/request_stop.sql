-- Leaves a stop request for the owner. A cancel outweighs a pause; a repeated request changes nothing.
insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), attempt, :event,
    case when started_at is null then 'assigned' else 'running' end, :by, :reason
from job
where id = :id and stage = {leased} and lease_token = :token
  and (stop_request is null or (stop_request = 'pause' and :stop_request = 'cancel'));

update job set stop_request = :stop_request, stop_requested_by = :by, stop_request_reason = :reason
where id = :id and stage = {leased} and lease_token = :token
  and (stop_request is null or (stop_request = 'pause' and :stop_request = 'cancel'));

select id from job where id = :id and stage = {leased} and lease_token = :token
