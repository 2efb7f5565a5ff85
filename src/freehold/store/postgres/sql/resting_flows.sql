-- Of the oldest open flows those that wait for a person: batches without a seal whose members have all ended, and workflows
-- with nodes that hold, or whose retry was cut off. Both can be only if another node has failed or was canceled.
select {flow_columns}, (select count(*) from {schema}.flow_node n where n.flow = f.id and {node_holds}),
    (select count(*) from {schema}.flow_node n where n.flow = f.id and {node_is_cut_off})
from (select * from {schema}.flow oldest where oldest.closed_at is null and oldest.kind <> 'group'
      order by oldest.closed_at, oldest.id limit :bound::integer) f
where f.canceled_at is null and (
    (f.kind = 'batch' and f.sealed_at is null and f.total = f.succeeded + f.failed + f.canceled)
    or (f.kind = 'workflow' and f.failed + f.canceled > 0
        and (select n.number from {schema}.flow_node n where n.flow = f.id and ({node_holds} or {node_is_cut_off})
             limit 1) is not null))
order by f.id limit :limit::integer
