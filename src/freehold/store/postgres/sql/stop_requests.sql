select id, lease_token, stop_request
from {schema}.job
where lease_owner = :owner::text and stop_request is not null  -- only a leased job has one
