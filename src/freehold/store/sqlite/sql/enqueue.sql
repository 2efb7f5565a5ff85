-- Jobs with the same shape differ only in their arguments. A call has few shapes, so that each is sent
-- once, and for each job its number.
with shape as materialized (
    select json_extract(value, '$.number') as number, json_extract(value, '$.task') as task,
        json_extract(value, '$.queue') as queue, json_extract(value, '$.priority') as priority,
        json_extract(value, '$.max_attempts') as max_attempts,
        json_extract(value, '$.pending') as pending, json_extract(value, '$.target') as target,
        json_extract(value, '$.limit_key') as limit_key,
        json_extract(value, '$.timeout_seconds') as timeout_seconds,
        json_extract(value, '$.tags') as tags, json_extract(value, '$.policy') as policy,
        json_extract(value, '$.meta') as meta,
        json_extract(value, '$.follows') as follows,
        coalesce(json_extract(value, '$.run_at'), clock()
            + cast(round(json_extract(value, '$.delay_seconds') * 1000000) as integer)) as due_at
    from json_each(:rows)
),
numbered as materialized (
    -- Nothing to look up if all jobs have one shape.
    select key, value as number
    from json_each(case when json_array_length(:rows) > 1 then :numbers else '[]' end)
)
insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, tags, policy, args, meta)
select clock(), due_at,
    case when pending then {pending} when due_at > clock() then {scheduled} when follows then {follower} else {ready} end,
    priority, max_attempts, timeout_seconds, queue, task, target, limit_key, tags, policy, c.value, meta
from json_each(:calls) c
left join numbered on numbered.key = c.key
join shape on shape.number = coalesce(numbered.number, 0)
order by c.key
returning id, created_at
