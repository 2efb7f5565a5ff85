-- What became of the jobs of a step, counted after its changes, in the same transaction: each change has left
-- an event by this author, which no other event has. A deleted job is gone.
with found as materialized (
    -- One probe for each job, of the days since an hour ago.
    select (select e.kind from {schema}.event e
            where e.job_id = i.id and e.by = :by::text and e.kind in (:event::text, :request_event::text)
              and e.at >= (select {schema}.clock() - interval '1 hour')
            order by e.job_id, e.id desc limit 1) as kind
    from unnest(:ids::bigint[]) as i(id)
),
left_over as (
    select count(*) as jobs from (
        select id from {schema}.job where id = any (:ids::bigint[]) and :event::text = 'deleted'
        union all
        select id from {schema}.history where id = any (:ids::bigint[]) and :event::text = 'deleted') kept
),
counted as (
    select case when :event::text = 'deleted' then cardinality(:ids::bigint[]) - l.jobs
            else (select count(*) from found where kind = :event::text) end as done,
        (select count(*) from found where kind = :request_event::text) as requested
    from left_over l
)
update {schema}.bulk_step s
set done = c.done, requested = c.requested, already = :already::integer, refused = :refused::json,
    changed = :changed::integer + cardinality(:ids::bigint[]) - c.done - c.requested
from counted c
where s.operation = :operation::bigint and s.number = :number::integer
