select id, lease_token, request
from job
where lease_owner = :owner and request is not null and stage = 'h'
