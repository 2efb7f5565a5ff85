select o.id, o.verb, o.by, o.reason, o.changes, o.filter, c.number, c.ids
from bulk_operation o
join bulk_chunk c on c.operation = o.id and c.number = (
    select max(s.number) + 1 from bulk_step s where s.operation = o.id)
where o.state = 'running' and (:operation is null or o.id = :operation)
order by o.id limit 1
