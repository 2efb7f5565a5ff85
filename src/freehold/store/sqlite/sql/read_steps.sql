-- The steps of a job in their order, and for waits the seconds that are left.
select name, number, kind, token, at, until, value, hidden, (until - clock()) / 1e6
from step where job_id = :id
order by number, name
