-- Wakes the job that waits for a gather.
update job
set stage = case when stage = {backoff} then {lane_head} else {ready} end, run_at = clock()
where waits_for = 'gather/' || :flow and waits_for is not null and stage in ({scheduled}, {backoff})
returning id
