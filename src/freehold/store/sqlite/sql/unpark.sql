insert into event (job_id, at, attempt, kind, state)
select id, clock(), attempt, 'unparked', 'queued'
from job where stage = {parked} and task in (select value from json_each(:tasks)) and parked_until is null
limit :limit;

update job
set stage = case when target is null then {ready} else {lane_head} end, reason = null
where id in (select id from job
             where stage = {parked} and task in (select value from json_each(:tasks))
               and parked_until is null limit :limit)
returning id
