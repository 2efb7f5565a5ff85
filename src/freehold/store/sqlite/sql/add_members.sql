-- Members of a flow, as `enqueue` stores jobs, if it may still get some. No row: it may not, and nothing was stored.
with shape as materialized (
    select json_extract(value, '$.number') as number, json_extract(value, '$.task') as task,
        json_extract(value, '$.queue') as queue, json_extract(value, '$.priority') as priority,
        json_extract(value, '$.max_attempts') as max_attempts, json_extract(value, '$.target') as target,
        json_extract(value, '$.limit_key') as limit_key,
        json_extract(value, '$.timeout_seconds') as timeout_seconds,
        json_extract(value, '$.tags') as tags, json_extract(value, '$.policy') as policy,
        json_extract(value, '$.meta') as meta,
        json_extract(value, '$.follows') as follows,
        json_extract(value, '$.start_by') as start_by,
        cast(round(json_extract(value, '$.start_by_seconds') * 1000000) as integer) as start_by_micros,
        coalesce(json_extract(value, '$.run_at'), clock()
            + cast(round(json_extract(value, '$.delay_seconds') * 1000000) as integer)) as due_at
    from json_each(:rows)
),
numbered as materialized (
    select key, value as number from json_each(:numbers)
)
insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, tags, policy, args, meta, start_by, waits_for)
select clock(), due_at,
    case when :waits_for is not null then {pending} when due_at > clock() then {scheduled}
        when follows then {follower} else {ready} end,
    priority, max_attempts, timeout_seconds, queue, task, target, limit_key, tags, policy, c.value, meta,
    coalesce(start_by, max(coalesce(due_at, clock()), clock()) + start_by_micros), :waits_for
from json_each(:calls) c
join numbered on numbered.key = c.key
join shape on shape.number = numbered.number
where {may_add}
order by c.key
returning id, created_at;

-- Ids of one statement follow each other.
update flow_range set last = last_insert_rowid()
where flow = :flow and first = (select max(first) from flow_range where flow = :flow)
    and last_insert_rowid() - json_array_length(:calls) <= last + 1000 and {may_add};

insert into flow_range (flow, first, last)
select :flow, last_insert_rowid() - json_array_length(:calls) + 1, last_insert_rowid()
where {may_add} and not exists (select 1 from flow_range where flow = :flow and last = last_insert_rowid());

update flow set total = total + json_array_length(:calls), change = change + 1 where id = :flow and {may_add}
