-- Locks of an addition of nodes, in the order of all locks: the lease of the member that adds them, the flow, the
-- sources. A fold writes the state of a source before it reads its edges, and so waits for this.
with held as materialized (
    {adding_member}
),
open_flow as materialized (
    {may_add}
)
select n.number from {schema}.flow_node n
where n.flow = :flow::bigint and n.number = any (:sources::integer[]) and exists (select from open_flow)
order by n.number for update of n
