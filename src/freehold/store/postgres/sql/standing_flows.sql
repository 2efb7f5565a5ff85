-- Flows with something to act upon for so long: since they closed or were canceled, or since a source of their first node
-- that is due has failed or was canceled. An act takes milliseconds: the database refuses it, or no worker runs.
select {flow_columns}
from (select * from {schema}.flow acted where acted.due order by acted.due, acted.id limit :bound::integer) f
where coalesce(f.closed_at, f.canceled_at, (
    select coalesce((select h.finished_at from {schema}.history h where h.id = s.job_id limit 1),
                    (select p.closed_at from {schema}.flow p where p.id = s.part))
    from {schema}.flow_edge e
    join {schema}.flow_node s on s.flow = e.flow and s.number = e.source and s.counted_state in ('failed', 'canceled')
    where e.flow = f.id and e.target = (
        select n.number from {schema}.flow_node n where n.flow = f.id and n.waits and {node_is_due} order by n.number limit 1)
    limit 1)) < (select {schema}.clock()) - make_interval(secs => :seconds::double precision)
order by f.id limit :limit::integer
