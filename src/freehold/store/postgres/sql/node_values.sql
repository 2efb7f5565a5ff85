-- The arguments of a node, and the results that it gets, by parameter. If its source ended before the edge was
-- added, from the history.
select '' as parameter, j.args::text from {schema}.job j where j.id = :id::bigint
union all
select e.parameter, coalesce(s.result, (select h.result from {schema}.history h where h.id = s.job_id limit 1))::text
from {schema}.flow_edge e join {schema}.flow_node s on s.flow = e.flow and s.number = e.source
where e.flow = :flow::bigint and e.target = :number::integer and e.parameter <> ''
order by 1
