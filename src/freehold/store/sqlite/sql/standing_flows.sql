-- Flows with something to act upon for so long: since they closed or were canceled, or since a source of their first node
-- that is due has failed or was canceled. An act takes milliseconds: the database refuses it, or no worker runs.
select {flow_columns}
from (select * from flow acted where acted.due order by acted.id limit :bound) f
where coalesce(f.closed_at, f.canceled_at, (
    select coalesce((select h.finished_at from history h where h.id = s.job_id),
                    (select p.closed_at from flow p where p.id = s.part))
    from flow_edge e
    join flow_node s on s.flow = e.flow and s.number = e.source and s.counted_state in ('failed', 'canceled')
    where e.flow = f.id and e.target = (
        select n.number from flow_node n where n.flow = f.id and n.waits and {node_is_due} order by n.number limit 1)
    limit 1)) < clock() - cast(:seconds * 1000000 as integer)
order by f.id limit :limit
