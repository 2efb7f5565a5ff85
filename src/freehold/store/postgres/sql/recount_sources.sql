-- After `restore_nodes` all counters of a workflow are counted again. The members of groups were retried before: a
-- group waits if members of it do, or if it has none and no seal. No join with the counts: a plan of an empty table
-- would compare each node with each. No `exists`: its plan can read all flows into a hash table.
with counted as materialized (
    select jsonb_object_agg(target, still_open) as still_open, jsonb_object_agg(target, bad) as bad
    from (
        select e.target, count(distinct e.source) filter (where s.state is null) as still_open,
            count(distinct e.source) filter (where s.state in ('failed', 'canceled')) as bad
        from {schema}.flow_edge e join {schema}.flow_node s on s.flow = e.flow and s.number = e.source
        where e.flow = :flow::bigint
        group by e.target
    ) each
)
update {schema}.flow_node n
set waits = case when n.part is null or n.state is not null then n.waits
        else (select true from {schema}.job j
                where j.lease_owner is null and j.waits_for = 'flow/' || n.part and j.waits_for is not null
                    and j.stage = {pending} limit 1) is true
            or (select g.sealed_at is null from {schema}.flow g where g.id = n.part) is true end,
    open_sources = coalesce(((select still_open from counted) ->> n.number::text)::integer, 0),
    bad_sources = coalesce(((select bad from counted) ->> n.number::text)::integer, 0)
where n.flow = :flow::bigint
