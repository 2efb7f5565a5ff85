-- Members of a group that wait for the sources of its node.
select id from job where waits_for = 'flow/' || :part and waits_for is not null and stage = {pending} limit :limit
