-- A node of a workflow with its job and edges, if it may still get some. A node with sources waits for them; a
-- source that has ended already counts as it has. No row: nothing was stored.
insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
    tags, policy, args, meta, start_by, waits_for)
select clock(), due_at,
    case when json_array_length(:sources) > 0 then {pending} when due_at > clock() then {scheduled} else {ready} end,
    :priority, :max_attempts, :timeout_seconds, :queue, :task, :target, :limit_key, :tags, :policy, :args, :meta,
    :start_by, case when json_array_length(:sources) > 0 then 'flow/' || :flow end
from (select coalesce(:run_at, clock() + cast(round(:delay_seconds * 1000000) as integer)) as due_at)
where :part is null and {may_add};

insert into flow_range (flow, first, last)
select :flow, last_insert_rowid(), last_insert_rowid() where :part is null and {may_add}
    and not exists (select 1 from flow_range where flow = :flow and last = last_insert_rowid() - 1);

update flow_range set last = last_insert_rowid()
where :part is null and flow = :flow and last = last_insert_rowid() - 1 and {may_add};

insert into flow_node (flow, number, name, job_id, part, on_failure, open_sources, bad_sources, waits)
select :flow, :number, :name, case when :part is null then last_insert_rowid() end, :part, :on_failure,
    (select count(distinct json_extract(e.value, '$.source')) from json_each(:sources) e
        left join flow_node n on n.flow = :flow and n.number = json_extract(e.value, '$.source') where n.counted_state is null),
    (select count(distinct json_extract(e.value, '$.source')) from json_each(:sources) e
        join flow_node n on n.flow = :flow and n.number = json_extract(e.value, '$.source')
        where n.counted_state in ('failed', 'canceled')),
    json_array_length(:sources) > 0
where {may_add}
returning number, job_id;

insert into flow_edge (flow, source, target, parameter)
select :flow, json_extract(value, '$.source'), :number, json_extract(value, '$.parameter')
from json_each(:sources) where {may_add};

update flow set total = total + 1, change = change + 1,
    due = due or exists (select 1 from flow_node n where n.flow = :flow and n.number = :number and n.waits
        and (n.open_sources = 0 or n.bad_sources > 0))
where id = :flow and {may_add}
