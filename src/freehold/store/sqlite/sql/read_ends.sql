with given as (
    select json_extract(value, '$.id') as id from json_each(:rows)
)
select j.id, j.task, j.stage, null as state, j.reason, null as result, null as error
from job j where j.id in (select id from given)
union all
select h.id, h.task, null as stage, h.state, h.reason, h.result, h.error
from history h where h.id in (select id from given)
