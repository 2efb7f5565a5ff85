select id, job_id, at, kind, state, attempt, by, reason, error::text, token, leased_at,
       started_at, due_at
from {schema}.event where job_id = :id::bigint order by id desc limit :newest::bigint
