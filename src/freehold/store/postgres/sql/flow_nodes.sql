select n.flow, n.number, n.name, n.job_id, n.part, n.on_failure, n.state, n.open_sources, n.bad_sources, n.waits,
    (select string_agg(distinct e.source::text, ',') from {schema}.flow_edge e
     where e.flow = n.flow and e.target = n.number)
from {schema}.flow_node n where n.flow = :flow::bigint order by n.number
