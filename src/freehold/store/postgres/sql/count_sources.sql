-- Followers count the sources that have ended, or are open again. A statement of its own, whose snapshot is younger
-- than the locks of `fold_ends`: an edge that was added before them is seen here, and one that is added later
-- knows the state of its source.
with mine as materialized (
    {locked_flows}
),
changed as materialized (
    select n.flow, n.number, n.state, n.counted_state from {schema}.flow_node n
    where n.flow = any (array(select flow from mine)) and n.state is distinct from n.counted_state
),
effect as materialized (
    select flow, number, bool_or(is_source) as is_source, sum(opened)::integer as opened, sum(bad)::integer as bad
    from (
        select flow, number, true as is_source, 0 as opened, 0 as bad from changed
        union all
        select c.flow, e.target, false, (c.state is null)::integer - (c.counted_state is null)::integer,
            coalesce(c.state in ('failed', 'canceled'), false)::integer
                - coalesce(c.counted_state in ('failed', 'canceled'), false)::integer
        from changed c cross join lateral (
            select distinct d.target from {schema}.flow_edge d where d.flow = c.flow and d.source = c.number) e
    ) each
    group by flow, number
),
counted as (
    update {schema}.flow_node n
    set counted_state = case when e.is_source then n.state else n.counted_state end,
        open_sources = n.open_sources + e.opened, bad_sources = n.bad_sources + e.bad
    from effect e
    where n.flow = e.flow and n.number = e.number
      and n.flow = any (array(select flow from effect)) and n.number = any (array(select number from effect))
    returning n.flow, n.waits and {node_is_due} as is_due
)
update {schema}.flow f set due = true, change = f.change + 1
where f.id = any (array(select flow from counted where is_due))
