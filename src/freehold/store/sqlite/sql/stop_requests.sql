select id, lease_token, stop_request
from job
where lease_owner = :owner and stop_request is not null and stage = {leased}
