-- Of given flows: whether the worklist has rows of them, and whether there is something to act upon.
with given as (
    select flow from json_to_recordset(:rows::json) as g(flow bigint)
)
select g.flow, exists (select from {schema}.flow_end e where e.flow = g.flow),
    exists (select from {schema}.flow f where f.id = g.flow and f.due)
from given g
