-- Parked jobs of these tasks whose arguments did not fit, and whether they have waited long enough.
select id, task, args, parked_until <= clock()
from job
where stage = {parked} and task in (select value from json_each(:tasks)) and parked_until is not null
  and id > :after
order by id
limit :limit
