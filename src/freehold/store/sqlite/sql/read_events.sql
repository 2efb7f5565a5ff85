select id, job_id, at, kind, state, attempt, by, reason, error, token, leased_at, started_at,
    due_at
from event where job_id = :id order by id desc limit coalesce(:newest, -1)
