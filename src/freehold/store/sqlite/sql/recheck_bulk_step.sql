-- Refuses a step, by its own key, if a job was planned, has not been changed, and is still in a state of the filter:
-- it changed between the read and the write, as when it became ready, and must be planned again. A leased job with a
-- stop request needs no second one. The CASE keeps a step of which all jobs were changed from reading them.
insert into bulk_step (operation, number, at)
select s.operation, s.number, clock() from bulk_step s
where s.operation = :operation and s.number = :number
  and case when s.changed > :changed then exists (
    select 1 from json_each(:ids) i
    where coalesce(
        (select case when l.stage = {pending} then 'pending' when l.stage in ({paused}, {paused_follower}) then 'paused'
                when l.stage = {failed} then 'failed' when l.stage <> {leased} then 'queued'
                when l.stop_request is not null then '' when l.started_at is null then 'assigned' else 'running' end
         from job l where l.id = i.value),
        (select h.state from history h where h.id = i.value)
      ) in (select value from json_each(:states))
      and not exists (select 1 from event e where e.job_id = i.value and e.by = :by)) end
