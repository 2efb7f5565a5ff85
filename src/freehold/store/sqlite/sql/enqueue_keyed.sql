insert into job (created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
    target, limit_key, unique_key, tags, policy, args, meta, start_by)
select clock(), due_at,
    case when :pending then {pending} when due_at > clock() then {scheduled} else {ready} end,
    :priority, :max_attempts, :timeout_seconds, :queue, :task, :target, :limit_key, :unique_key,
    :tags, :policy, :args, :meta, coalesce(:start_by,
        max(coalesce(due_at, 0), clock()) + cast(round(:start_by_seconds * 1000000) as integer))
from (select coalesce(:run_at, clock() + cast(round(:delay_seconds * 1000000) as integer)) as due_at)
where not exists (select 1 from job where unique_key = :unique_key and stage <> {failed})
  -- A key is remembered beyond its time while its job is live.
  and not exists (select 1 from idempotency i where i.key = :idempotency_key
      and (i.expires_at > clock() or exists (select 1 from job j where j.id = i.job_id)))
returning :position, id, created_at;

insert or replace into idempotency (key, job_id, expires_at)
select :idempotency_key, last_insert_rowid(),
    clock() + cast(round(:idempotency_seconds * 1000000) as integer)
where changes() = 1 and :idempotency_key is not null
