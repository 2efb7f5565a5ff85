-- A node whose sources have ended enters its queue, if it still waits.
update job
set stage = case when run_at > clock() then {scheduled} else {ready} end, waits_for = null, args = coalesce(:args, args)
where id = :id and stage = {pending} and waits_for = 'flow/' || :flow
returning id;

update flow_node set waits = 0 where flow = :flow and number = :number and waits
