-- Nodes of a workflow with their jobs and edges, if it may still get some. A node with sources waits for them; a
-- source that has ended already counts as it has. No row: nothing was stored.
with held as materialized (
    {adding_member}
),
open_flow as materialized (
    {may_add}
),
given as materialized (
    select g.*, t.now, coalesce(g.run_at, t.now + make_interval(secs => g.delay_seconds)) as due_at
    from open_flow, json_to_recordset(:rows::json) as g(
        number integer, name text, on_failure text, part bigint, sources json, task text, queue text, priority smallint,
        args text, max_attempts smallint, run_at timestamptz, delay_seconds double precision, target text,
        limit_key text, timeout_seconds real, tags text, policy text, meta text, start_by timestamptz),
        (select {schema}.clock() as now) t
),
edge as materialized (
    select g.number as target, e.source, e.parameter
    from given g cross join lateral json_to_recordset(g.sources) as e(source integer, parameter text)
),
sources as materialized (
    select target, count(*) filter (where counted_state is null) as still_open,
        count(*) filter (where counted_state in ('failed', 'canceled')) as bad
    from (select distinct e.target, e.source, n.counted_state
          from edge e left join {schema}.flow_node n on n.flow = :flow::bigint and n.number = e.source
              and n.number = any (array(select source from edge))) each
    group by target
),
drawn as materialized (
    -- Ids are drawn in the order of the nodes, which is the order of claiming.
    select nextval('{schema}.job_id') as id, g.* from (select * from given where part is null order by number) g
),
stored as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
        target, limit_key, tags, policy, args, meta, start_by, waits_for)
    select d.id, d.now, d.due_at,
        case when s.target is not null then {pending} when d.due_at > d.now then {scheduled} else {ready} end,
        d.priority, d.max_attempts, d.timeout_seconds, d.queue, d.task, d.target, d.limit_key, d.tags::json,
        d.policy::json, d.args::json, d.meta::json, d.start_by, case when s.target is not null then 'flow/' || :flow::text end
    from drawn d left join sources s on s.target = d.number
),
joined as (
    insert into {schema}.flow_edge (flow, source, target, parameter)
    select :flow::bigint, source, target, parameter from edge
),
made as (
    insert into {schema}.flow_node (flow, number, name, job_id, part, on_failure, open_sources, bad_sources, waits)
    select :flow::bigint, g.number, g.name, d.id, g.part, g.on_failure, coalesce(s.still_open, 0), coalesce(s.bad, 0),
        s.target is not null
    from given g left join drawn d using (number) left join sources s on s.target = g.number
    returning waits and open_sources = 0 or bad_sources > 0 as is_due
),
counted as (
    update {schema}.flow f
    set total = f.total + (select count(*) from given), change = f.change + 1,
        due = f.due or (select coalesce(bool_or(is_due), false) from made)
    from open_flow o where f.id = o.id
),
placed as (
    insert into {schema}.flow_range (flow, first, last)
    select :flow::bigint, min(id), max(id) from drawn having count(*) > 0
)
select g.number, d.id from given g left join drawn d using (number) order by g.number
