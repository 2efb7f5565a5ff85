-- How many more jobs of this limit_key may start; null: it has no limit.
(select max(0, min(
        coalesce(r.max_leases - (select count(*) from job h where h.limit_key = k.limit_key
            and h.stage = {leased} and h.lease_expires_at > clock()), 1000000),
        coalesce(r.rate_starts - (select coalesce(sum(s.starts), 0) from rate_usage s
            where s.name = 'k/' || k.limit_key and s.slot between {slot} - {rate_slots} and {slot}), 1000000)))
    from key_limit r
    where r.key = {rule_key})
