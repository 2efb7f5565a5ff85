-- A worker whose code fits the arguments of these jobs has started, or they have waited long enough. Their
-- `parked_until` stays: an older worker may claim them first, and park them again.
insert into event (job_id, at, attempt, kind, state)
select id, clock(), attempt, 'unparked', 'queued'
from job where stage = {parked} and parked_until is not null and id = :id;

update job
set stage = case when target is null then {ready} else {lane_head} end, reason = null
where stage = {parked} and parked_until is not null and id = :id
returning id
