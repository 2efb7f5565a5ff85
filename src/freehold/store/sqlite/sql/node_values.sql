-- The arguments of a node, and the results that it gets, by parameter. If its source ended before the edge was
-- added, from the history.
select '' as parameter, j.args from job j where j.id = :id
union all
select e.parameter, coalesce(s.result, (select h.result from history h where h.id = s.job_id))
from flow_edge e join flow_node s on s.flow = e.flow and s.number = e.source
where e.flow = :flow and e.target = :number and e.parameter <> ''
order by 1
