-- Pause and limits of a queue, and of all queues together, with their current use.
select r.name, r.paused_at, r.paused_by, r.pause_reason, r.paused_until,
    r.max_leases, r.rate_starts, r.rate_seconds,
    (select count(*) from job h where h.stage = {leased} and (h.queue = r.name or r.name = '*')
        and h.lease_expires_at > clock()),
    (select coalesce(sum(s.starts), 0) from rate_usage s
     where s.name = 'q/' || r.name and s.slot between {slot} - {rate_slots} and {slot}),
    (select h.id from job h where h.stage = {leased} and (h.queue = r.name or r.name = '*')
        and h.lease_expires_at > clock() limit 1)
from queue r
where r.name in (:queue, '*')
order by r.name desc
