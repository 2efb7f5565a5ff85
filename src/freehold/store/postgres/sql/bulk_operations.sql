-- Operations with the sums of their steps, newest first; or one of them.
select o.id, o.asked_at, o.ended_at, o.by, o.via, o.reason, o.verb, o.changes::text as changes,
    o.filter::text as filter, o.jobs, o.preview::text as preview, o.state, s.done, s.requested, s.already, s.changed,
    s.refused::text as refused
from (
    select * from {schema}.bulk_operation
    where id < :before::bigint and (:operation::bigint is null or id = :operation::bigint)
    order by id desc limit :limit::integer) o
cross join lateral (
    select sum(done)::integer as done, sum(requested)::integer as requested, sum(already)::integer as already,
        sum(changed)::integer as changed, json_agg(refused) filter (where refused is not null) as refused
    from {schema}.bulk_step where operation = o.id) s
order by o.id desc
