exists (select 1 from flow_edge e join flow_node s on s.flow = e.flow and s.number = e.source
    where e.flow = n.flow and e.target = n.number and s.state is not 'succeeded')
