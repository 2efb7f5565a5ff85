-- Members of a group whose sources have ended enter their queues.
update job set stage = case when run_at > clock() then {scheduled} else {ready} end, waits_for = null
where id in (select id from job where waits_for = 'flow/' || :part and waits_for is not null and stage = {pending}
             limit :limit)
returning id
