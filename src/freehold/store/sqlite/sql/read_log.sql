select job_id, token, number, at, line
from job_log where job_id = :id
order by token, number
