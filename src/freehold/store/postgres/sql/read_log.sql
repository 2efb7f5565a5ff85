select distinct on (token, number) job_id, token, number, at, line
from {schema}.job_log where job_id = :id::bigint
order by token desc, number desc, at limit :newest::bigint
