-- `succeed` for jobs of which some are members of flows: their ends enter the worklist, one row for each flow. Members of
-- one flow share the text of their policy, so that it is read once for all of them.
with {succeeding},
shared as materialized (
    select text::json as policy, members
    from (select policy::text as text, count(*) as members from gone group by 1) each
),
named as materialized (
    select {flow_of} as flow, {node_of} as node, members from shared
),
counted as (
    insert into {schema}.flow_end (flow, node, succeeded)
    select flow, node, sum(members) from named where flow is not null group by flow, node
)
select id from held
