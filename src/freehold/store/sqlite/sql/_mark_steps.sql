-- Marks a job that has steps, once.
update job set policy = json_set(coalesce(policy, json_object()), '$.steps', json('true'))
where {lease_holds} and json_extract(policy, '$.steps') is null
