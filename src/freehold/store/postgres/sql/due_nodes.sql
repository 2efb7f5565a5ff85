-- Nodes to be released or canceled, and whether they get results of their sources.
select n.number, n.name, n.job_id, n.part, n.on_failure, n.open_sources, n.bad_sources,
    (select e.source from {schema}.flow_edge e
     where e.flow = n.flow and e.target = n.number and e.parameter <> '' limit 1) is not null
from {schema}.flow_node n
where n.flow = :flow::bigint and n.waits and {node_is_due}
order by n.number limit :limit::integer
