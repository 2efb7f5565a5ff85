-- properties: not_notified
-- What claims and sweeps do with rows, for a transaction that is rolled back. Only ready rows keep their
-- lane: it could not have several holders. Reads the texts too: one that is no UTF-8 raises an error.
update job
set stage = :stage, target = case when :stage = {ready} then target end,
    attempt = attempt + :counted, lost_attempts = lost_attempts + :counted,
    lease_owner = case when :stage = {leased} then '-' end,
    lease_token = case when :stage = {leased} then 0 end,
    leased_at = case when :stage = {leased} then clock() end,
    lease_expires_at = case when :stage = {leased} then clock() end,
    heartbeat_at = null, started_at = null, stop_request = null, waiting_key = null
where id = :id
returning id, queue, task, args, policy, target, limit_key
