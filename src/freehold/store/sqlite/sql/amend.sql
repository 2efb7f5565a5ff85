-- Another priority, queue, time or number of attempts of a waiting job, as it was read. The stage follows the time.
insert into event (job_id, at, due_at, attempt, kind, state, by, reason)
select id, clock(), :run_at, attempt, 'amended', :state, :by, :reason
from job where id = :id and stage = :seen_stage and (:max_attempts is null or attempt < :max_attempts);

update job
set priority = coalesce(:priority, priority), queue = coalesce(:queue, queue), run_at = coalesce(:run_at, run_at),
    max_attempts = coalesce(:max_attempts, max_attempts),
    stage = case when :run_at is null then stage when :run_at > clock() then :stage_later else :stage_due end,
    parked_until = case when :run_at > clock() then null else parked_until end
where id = :id and stage = :seen_stage and (:max_attempts is null or attempt < :max_attempts)
returning id, 1
