select job_id, token, number, at, line
from job_log where job_id = :id
order by token desc, number desc limit coalesce(:newest, -1)
