-- Stores an operation with its set, and records it.
insert into bulk_operation (asked_at, by, via, reason, verb, changes, filter, jobs, chunks, preview, state, ended_at)
values (clock(), :by, :via, :reason, :verb, :changes, :filter, :jobs, json_array_length(:chunks), :preview,
    case when :jobs = 0 then 'done' else 'running' end, case when :jobs = 0 then clock() end);

insert into bulk_chunk (operation, number, ids)
select (select max(id) from bulk_operation), key + 1, value from json_each(:chunks);

insert into bulk_step (operation, number, at) select max(id), 0, clock() from bulk_operation;

insert into audit (at, by, via, verb, kind, subject, reason, after)
select asked_at, by, via, 'start', 'bulk', cast(id as text), reason, json_patch(json_object(), json_object(
    'verb', verb, 'changes', json(changes), 'filter', json(filter), 'jobs', jobs))
from bulk_operation where id = (select max(id) from bulk_operation);

select max(id) from bulk_operation
