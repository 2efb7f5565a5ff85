-- After `restore_nodes` all counters of a workflow are counted again. The members of groups were retried before: a
-- group waits if members of it do, or if it has none and no seal.
update flow_node as n
set open_sources = (select count(distinct e.source) from flow_edge e join flow_node s on s.flow = e.flow and s.number = e.source
        where e.flow = n.flow and e.target = n.number and s.state is null),
    bad_sources = (select count(distinct e.source) from flow_edge e join flow_node s on s.flow = e.flow and s.number = e.source
        where e.flow = n.flow and e.target = n.number and s.state in ('failed', 'canceled'))
where n.flow = :flow;

update flow_node as n
set waits = exists (select 1 from job j where j.waits_for = 'flow/' || n.part and j.waits_for is not null
        and j.stage = {pending})
    or exists (select 1 from flow g where g.id = n.part and g.sealed_at is null)
where n.flow = :flow and n.part is not null and n.state is null
