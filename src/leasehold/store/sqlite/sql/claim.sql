-- Ready jobs -> leases, for one queue. Nobody else writes meanwhile, so nothing is unsettled.

-- A token only where there is something to claim: an idle claim writes nothing.
update counter set value = value + 1
where name = 'lease_token' and exists ({open_ready} limit 1);

-- Lane jobs among the candidates that are not next in their lane go behind its holder.
update job set stage = 'f'
where id in ({open_ready} limit :looked_at)
  and stage = 'r' and target is not null
  and ({lane_held} or id <> {next_in_lane});

insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), attempt, 'parked', 'queued', :owner, 'no worker knows this task'
from job join ({winner}) on id = won
where not known;

update job
set stage = case when known then 'h' else 'u' end,
    attempt = case when known then attempt + 1 else attempt end,
    lease_owner = case when known then :owner end,
    lease_token = case when known then (select value from counter where name = 'lease_token') end,
    leased_at = case when known then clock() end,
    lease_expires_at =
        case when known then clock() + cast(round(:lease_seconds * 1000000) as integer) end,
    reason = case when known then null else 'no worker knows this task' end
from ({winner})
where id = won
returning case when stage = 'h' then id end, lease_token, task, queue, args, attempt,
    max_attempts, lost, priority, target, timeout_seconds, policy, null, null;

-- Whether more is ready, and how much of it nobody could settle.
select null, null, null, null, null, null, null, null, null, null, null, null,
    exists ({open_ready} limit 1), 0
