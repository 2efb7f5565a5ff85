select n.flow, n.number, n.name, n.job_id, n.part, n.on_failure, n.state, n.open_sources, n.bad_sources, n.waits,
    (select group_concat(distinct e.source) from flow_edge e where e.flow = n.flow and e.target = n.number)
from flow_node n where n.flow = :flow order by n.number
