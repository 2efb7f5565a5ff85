-- After the last step the operation is done, and its sums are recorded.
update bulk_operation set state = 'done', ended_at = clock() where id = :operation and chunks = :number;

insert into audit (at, by, via, verb, kind, subject, reason, after)
select d.ended_at, d.by, 'worker', 'finish', 'bulk', cast(d.id as text), d.reason, (
    select json_object('done', sum(s.done), 'requested', sum(s.requested), 'already', sum(s.already),
        'changed', sum(s.changed), 'refused', d.jobs - sum(s.done + s.requested + s.already + s.changed))
    from bulk_step s where s.operation = d.id)
from bulk_operation d where d.id = :operation and d.chunks = :number
