-- properties: fills_candidates
-- Leases ready jobs where only the order matters: no lane, limit, pause, unknown task or lost worker. If one
-- candidate is not plain, it leases none and leaves all of them to `claim`.
delete from candidate;

insert into candidate (id, won)
select id,
    target is null and limit_key is null and lost_attempts = 0
    and (:tasks is null or task in (select value from json_each(:tasks)))
from job
where queue = :queue and stage in ({ready}, {lane_head}) and not {is_guarded} and not {is_late}
order by queue, -priority, id
limit :wanted;

-- An idle claim draws no token and writes nothing.
update counter set value = value + 1
where name = 'lease_token' and (select min(won) from candidate);

update job
set stage = {leased}, attempt = attempt + 1, lease_owner = :owner,
    lease_token = (select value from counter where name = 'lease_token'), leased_at = clock(),
    lease_expires_at = clock() + cast(round(:lease_seconds * 1000000) as integer), reason = null
from candidate
where job.id = candidate.id and (select min(won) from candidate)
returning job.id, lease_token, task, queue, args, attempt, max_attempts, lost_attempts, job.priority, target,
    timeout_seconds, policy, job.limit_key, meta, coalesce(parked_until <= leased_at, 0), null, null, null;

-- Whether more may be ready, and whether the full claim is needed.
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
    (select count(*) from candidate) >= :wanted,
    {is_guarded} or exists (select 1 from candidate where not won),
    coalesce((select weight from queue where name = :queue), 1)
