-- How many jobs may start now, under the limits of the queue and of all queues.
(select min(:wanted, coalesce(min(max(0, min(
        coalesce(r.max_leases - (select count(*) from job h where h.stage = {leased}
            and (h.queue = r.name or r.name = '*') and h.lease_expires_at > clock()), :wanted),
        coalesce(r.rate_starts - (select coalesce(sum(s.starts), 0) from rate_usage s
            where s.name = 'q/' || r.name and s.slot between {slot} - {rate_slots} and {slot}), :wanted)))), :wanted))
    from queue r where r.name in (:queue, '*'))
