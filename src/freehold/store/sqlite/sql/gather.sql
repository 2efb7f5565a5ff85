-- Jobs that a handler gathers, their flow and the step, if its lease holds. The step that an earlier call of this
-- attempt has stored is returned.
{member_shapes}
insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, tags, policy, args, meta, start_by)
select clock(), due_at, case when due_at > clock() then {scheduled} when follows then {follower} else {ready} end,
    priority, max_attempts, timeout_seconds, queue, task, target, limit_key, tags, policy, c.value, meta,
    coalesce(start_by, max(coalesce(due_at, clock()), clock()) + start_by_micros)
from json_each(:calls) c
join numbered on numbered.key = c.key
join shape on shape.number = numbered.number
where exists (select 1 from job where {lease_holds}) and not exists (select 1 from step where job_id = :id and name = :name)
order by c.key;

-- Ids of one statement follow each other. A table without rowid leaves last_insert_rowid() as it is.
insert into flow_range (flow, first, last)
select :flow, last_insert_rowid() - json_array_length(:calls) + 1, last_insert_rowid()
where changes() = json_array_length(:calls);

insert into step (job_id, name, number, token, at, kind, value, hidden)
select :id, :name, :number, :token, clock(), 'gather', json_object('flow', :flow, 'jobs',
    (select json_group_array(id) from (select id from job where id between r.first and r.last order by id))), 0
from flow_range r where r.flow = :flow;

insert into flow (id, kind, name, total, created_at, sealed_at, parent_job)
select :flow, 'gather', :name, json_array_length(:calls), clock(), clock(), :id from flow_range where flow = :flow;

{mark_steps};

select s.value, s.kind from step s where s.job_id = :id and s.name = :name and exists (select 1 from job where {lease_holds})
