-- Refuses a step, by its own key, if a job was planned, has not been changed, and is still in a state of the filter:
-- it changed between the read and the write, as when it became ready, and must be planned again. A leased job with a
-- stop request needs no second one. The CASE keeps a step of which all jobs were changed from reading them; the
-- scalar subqueries make one probe for each job.
insert into {schema}.bulk_step (operation, number, at)
select s.operation, s.number, {schema}.clock() from {schema}.bulk_step s
where s.operation = :operation::bigint and s.number = :number::integer
  and case when s.changed > :changed::integer then exists (
    select 1 from unnest(:ids::bigint[]) as i(id)
    where coalesce(
        (select case when l.stage = {pending} then 'pending' when l.stage in ({paused}, {paused_follower}) then 'paused'
                when l.stage = {failed} then 'failed' when l.stage <> {leased} then 'queued'
                when l.stop_request is not null then '' when l.started_at is null then 'assigned' else 'running' end
         from {schema}.job l where l.id = i.id),
        (select h.state from {schema}.history h where h.id = i.id order by h.id limit 1)
      ) = any (:states::text[])
      and (select e.id from {schema}.event e
           where e.job_id = i.id and e.by = :by::text and e.at >= (select {schema}.clock() - interval '1 hour')
           order by e.job_id, e.id desc limit 1) is null) end
