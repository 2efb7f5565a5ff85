-- Operations with the sums of their steps, newest first; or one of them.
select o.id, o.asked_at, o.ended_at, o.by, o.via, o.reason, o.verb, o.changes, o.filter, o.jobs, o.preview,
    o.state, sum(s.done), sum(s.requested), sum(s.already), sum(s.changed),
    json_group_array(json(s.refused)) filter (where s.refused is not null)
from bulk_operation o join bulk_step s on s.operation = o.id
where o.id < :before and (:operation is null or o.id = :operation)
group by o.id
order by o.id desc limit :limit
