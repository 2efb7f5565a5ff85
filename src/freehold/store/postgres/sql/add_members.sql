-- Members of a flow, as `enqueue` stores jobs, if it may still get some. No row: it may not, and nothing was stored.
with held as materialized (
    {adding_member}
),
open_flow as materialized (
    {may_add}
),
{member_shapes},
stored as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, tags, policy, args, meta, start_by, waits_for)
    select id, now, due_at, case when :waits_for::text is null then stage else {pending} end, priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
           tags::json, policy::json, args, meta::json, starts_by, :waits_for::text
    from (
        -- Ids are drawn in the caller's order, which is the order of claiming.
        select nextval('{schema}.job_id') as id, c.args, c.number
        from open_flow,
            rows from (json_array_elements(:calls::json), unnest(:numbers::integer[])) as c(args, number)
    ) call
    left join shape using (number)
    returning id
),
added as materialized (select count(*) as members, min(id) as first, max(id) as last from stored),
counted as (
    update {schema}.flow f set total = f.total + a.members, change = f.change + 1
    from open_flow o, added a where f.id = o.id
),
extended as (
    -- Of members that are added one by one: one row for many.
    update {schema}.flow_range r set last = greatest(r.last, a.last)
    from added a
    where r.flow = :flow::bigint
      and r.first = (select max(n.first) from {schema}.flow_range n where n.flow = :flow::bigint)
      and a.first between r.last and r.last + 1000
    returning r.first
),
placed as (
    insert into {schema}.flow_range (flow, first, last)
    select :flow::bigint, a.first, a.last from added a
    where a.members > 0 and not exists (select from extended)
)
select s.id, t.now from stored s, (select {schema}.clock() as now) t
