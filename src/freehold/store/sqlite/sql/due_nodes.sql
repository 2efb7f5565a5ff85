-- Nodes to be released or canceled, and whether they get results of their sources.
select n.number, n.name, n.job_id, n.part, n.on_failure, n.open_sources, n.bad_sources,
    exists (select 1 from flow_edge e where e.flow = n.flow and e.target = n.number and e.parameter <> '')
from flow_node n
where n.flow = :flow and n.waits and {node_is_due}
order by n.number limit :limit
