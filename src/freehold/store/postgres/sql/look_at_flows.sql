-- Of given flows: whether the worklist has rows of them, and whether there is something to act upon.
with given as (
    select flow from json_to_recordset(:rows::json) as g(flow bigint)
)
select g.flow, coalesce((select e.flow from {schema}.flow_end e where e.flow >= g.flow order by e.flow limit 1) = g.flow, false),
    coalesce((select f.due from {schema}.flow f where f.id = g.flow), false)
from given g
