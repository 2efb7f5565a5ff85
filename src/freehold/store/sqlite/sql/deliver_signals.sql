-- Wakes the jobs that wait for a signal.
update job
set stage = case when stage = {backoff} then {lane_head} else {ready} end, run_at = clock()
where waits_for = 'signal/' || :name and waits_for is not null and stage in ({scheduled}, {backoff})
returning id;

update signal set delivered = 1 where name = :name and not delivered
