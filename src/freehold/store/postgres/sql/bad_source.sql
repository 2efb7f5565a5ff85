-- A source of a node that failed or was canceled.
select s.name, s.job_id, s.counted_state
from {schema}.flow_edge e join {schema}.flow_node s on s.flow = e.flow and s.number = e.source
where e.flow = :flow::bigint and e.target = :number::integer and s.counted_state in ('failed', 'canceled')
order by s.number limit 1
