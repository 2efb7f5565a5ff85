-- properties: takes_long
-- Stores an operation with its set, and records it.
with operation as (
    insert into {schema}.bulk_operation (asked_at, by, via, reason, verb, changes, filter, jobs, chunks, preview,
        state, ended_at)
    select t.now, :by::text, :via::text, :reason::text, :verb::text, :changes::json, :filter::json,
        :jobs::integer, json_array_length(:chunks::json), :preview::json,
        case when :jobs::integer = 0 then 'done' else 'running' end,
        case when :jobs::integer = 0 then t.now end
    from (select {schema}.clock() as now) t
    returning *
),
listed as (
    insert into {schema}.bulk_chunk (operation, number, ids)
    select o.id, c.number, c.ids
    from operation o, json_array_elements(:chunks::json) with ordinality as c(ids, number)
),
guarded as (
    insert into {schema}.bulk_step (operation, number, at) select id, 0, asked_at from operation
),
audited as (
    insert into {schema}.audit (at, by, via, verb, kind, subject, reason, after)
    select asked_at, by, via, 'start', 'bulk', id::text, reason, json_strip_nulls(json_build_object(
        'verb', verb, 'changes', changes, 'filter', filter, 'jobs', jobs))
    from operation
)
select id from operation
