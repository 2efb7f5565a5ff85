-- Jobs that a handler gathers, their flow and the step, if its lease holds. The step that an earlier call of this
-- attempt has stored is returned; one that commits meanwhile refuses this statement by its key.
with held as materialized (
    {adding_member}
),
known as materialized (
    select s.value, s.kind from {schema}.step s join held h on s.job_id = h.id where s.name = :name::text
),
{member_shapes},
stored as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, tags, policy, args, meta, start_by)
    select id, now, due_at, stage, priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
           tags::json, policy::json, args, meta::json, starts_by
    from (
        -- Ids are drawn in the caller's order, which is the order of claiming.
        select nextval('{schema}.job_id') as id, c.args, c.number
        from held, rows from (json_array_elements(:calls::json), unnest(:numbers::integer[])) as c(args, number)
        where not exists (select from known)
    ) call
    left join shape using (number)
    returning id
),
children as materialized (
    select json_build_object('flow', :flow::bigint, 'jobs', json_agg(id order by id)) as value, count(*) as total,
        min(id) as first, max(id) as last
    from stored having count(*) > 0
),
made as (
    insert into {schema}.flow (id, kind, name, total, created_at, sealed_at, parent_job)
    select :flow::bigint, 'gather', :name::text, c.total, t.now, t.now, h.id
    from children c, held h, (select {schema}.clock() as now) t
),
placed as (
    insert into {schema}.flow_range (flow, first, last) select :flow::bigint, first, last from children
),
put as (
    insert into {schema}.step (job_id, name, number, token, at, kind, value, hidden)
    select h.id, :name::text, :number::integer, :token::bigint, {schema}.clock(), 'gather', c.value, false
    from children c, held h
),
marked as (
    {mark_steps}
)
select coalesce((select value::text from known), (select value::text from children)),
    coalesce((select kind from known), 'gather')
from held
