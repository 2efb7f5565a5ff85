-- The jobs that callers wait for, live or ended. A read of history probes each of its days, so it is left out
-- for live jobs.
with given as (
    select id from json_to_recordset(:rows::json) as g(id bigint)
),
live as materialized (
    select j.id, j.task, j.stage::text as stage, j.reason
    from {schema}.job j where j.id = any (array(select id from given))
)
select id, task, stage, null::text as state, reason, null::text as result, null::text as error from live
union all
select h.id, h.task, null::text as stage, h.state, h.reason, h.result::text as result, h.error::text as error
from {schema}.history h where h.id = any (array(select id from given except select id from live))
