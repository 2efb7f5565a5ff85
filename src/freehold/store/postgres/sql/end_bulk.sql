-- After the last step the operation is done, and its sums are recorded.
with done as (
    update {schema}.bulk_operation set state = 'done', ended_at = {schema}.clock()
    where id = :operation::bigint and chunks = :number::integer
    returning *
)
insert into {schema}.audit (at, by, via, verb, kind, subject, reason, after)
select d.ended_at, d.by, 'worker', 'finish', 'bulk', d.id::text, d.reason, (
    select json_build_object('done', sum(s.done), 'requested', sum(s.requested), 'already', sum(s.already),
        'changed', sum(s.changed), 'refused', d.jobs - sum(s.done + s.requested + s.already + s.changed))
    from {schema}.bulk_step s where s.operation = d.id)
from done d
