-- The ticks of a schedule become jobs, if the schedule is as it was read.
insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, unique_key, tags, policy, args, meta, start_by)
select clock(), due_at, case when due_at > clock() then {scheduled} else {ready} end, priority,
    max_attempts, timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, args,
    meta, coalesce(max(due_at, clock()), clock()) + cast(round(start_by_seconds * 1000000) as integer)
from (
    select json_extract(value, '$.run_at_micros') as due_at,
        json_extract(value, '$.priority') as priority,
        json_extract(value, '$.max_attempts') as max_attempts,
        json_extract(value, '$.timeout_seconds') as timeout_seconds,
        json_extract(value, '$.queue') as queue, json_extract(value, '$.task') as task,
        json_extract(value, '$.target') as target, json_extract(value, '$.limit_key') as limit_key,
        json_extract(value, '$.unique_key') as unique_key, json_extract(value, '$.tags') as tags,
        json_extract(value, '$.policy') as policy, json_extract(value, '$.args') as args,
        json_extract(value, '$.meta') as meta,
        json_extract(value, '$.start_by_seconds') as start_by_seconds
    from json_each(:ticks) order by key)
where exists (select 1 from schedule where name = :name and next_at = :seen_at and edit = :seen_edit)
on conflict (unique_key) where unique_key is not null and stage <> {failed} do nothing
returning :name, id;

-- changes(): the jobs that were inserted above; the other ticks are skipped.
update schedule
set next_at = :next_at, counted_to = :counted_to, problem = :problem,
    missed = missed + :missed,
    fired = fired + changes(),
    last_job = case when changes() > 0 then last_insert_rowid() else last_job end,
    last_at = case when changes() = 0 then last_at
                   when changes() = json_array_length(:ticks) then :last_tick else :first_tick end,
    skipped = skipped + json_array_length(:ticks) - changes(),
    skipped_at = case when json_array_length(:ticks) > changes() then clock() else skipped_at end,
    skipped_for = case when json_array_length(:ticks) > changes() then
            (select id from job where unique_key = :key and stage <> {failed})
        else skipped_for end,
    paused_at = null, paused_by = null, pause_reason = null, paused_until = null
where name = :name and next_at = :seen_at and edit = :seen_edit
returning name, null
