select id, lease_token, request
from {schema}.job
where lease_owner = :owner::text and request is not null  -- only a leased job has one
