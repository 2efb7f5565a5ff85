-- `succeed` for jobs of which some are members of flows: their ends enter the worklist, one row for each flow.
with {succeeding},
counted as (
    insert into {schema}.flow_end (flow, node, succeeded)
    select flow, node, count(*)
    from (select {flow_of} as flow, {node_of} as node from gone) member
    where flow is not null
    group by flow, node
)
select id from held
