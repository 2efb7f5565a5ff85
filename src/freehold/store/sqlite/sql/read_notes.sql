select job_id, token, number, at, line
from note where job_id = :id
order by token, number
