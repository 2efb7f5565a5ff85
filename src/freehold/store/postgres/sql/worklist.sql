-- The first flows of the worklist.
with recursive listed as (
    (select flow from {schema}.flow_end order by flow limit 1)
    union all
    select (select e.flow from {schema}.flow_end e where e.flow > l.flow order by e.flow limit 1)
    from listed l where l.flow is not null
)
select flow from listed where flow is not null limit :limit::integer
