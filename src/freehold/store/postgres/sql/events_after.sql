select id, job_id, at, kind, state, attempt, by, reason, error::text, token, leased_at,
       started_at, due_at
from {schema}.event where id > :after::bigint order by id limit :limit::integer
