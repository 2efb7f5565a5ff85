-- A line whose write is repeated exists already.
insert or ignore into job_log (job_id, token, at, number, line)
select held.id, held.lease_token,
    clock() - cast(round(json_extract(l.value, '$.ago_seconds') * 1000000) as integer),
    json_extract(l.value, '$.number'), json_extract(l.value, '$.text')
from (select id, lease_token from job where {lease_holds}) held, json_each(:lines) l;

update job set progress = coalesce(:progress, progress)
where {lease_holds}
returning id
