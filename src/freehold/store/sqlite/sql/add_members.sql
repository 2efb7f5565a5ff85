-- Members of a flow, as `enqueue` stores jobs, if it may still get some. No row: it may not, and nothing was stored.
{member_shapes}
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
