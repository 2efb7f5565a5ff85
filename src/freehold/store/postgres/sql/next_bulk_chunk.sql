-- The next chunk of a running operation: of this one, or of the oldest.
select o.id, o.verb, o.by, o.reason, o.changes::text as changes, o.filter::text as filter, c.number,
    c.ids::text as ids
from {schema}.bulk_operation o
join {schema}.bulk_chunk c on c.operation = o.id and c.number = (
    select max(s.number) + 1 from {schema}.bulk_step s where s.operation = o.id)
where o.state = 'running' and (:operation::bigint is null or o.id = :operation::bigint)
order by o.id limit 1
