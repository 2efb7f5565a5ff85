select id, lease_token, task, queue, args, attempt, max_attempts, lost_attempts, priority, target,
    timeout_seconds, policy, limit_key, meta, 0, lease_owner, stop_request
from job
where stage = {leased} and queue in (select distinct queue from job where stage = {leased})
  and lease_expires_at <= clock()
order by queue, lease_expires_at, id
limit :limit
