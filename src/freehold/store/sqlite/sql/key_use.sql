-- A limit_key: its rule, its live leases, one of them, and its recent starts.
select r.max_leases, r.rate_starts, r.rate_seconds,
    (select count(*) from job h where h.limit_key = k.limit_key and h.stage = {leased}
        and h.lease_expires_at > clock()),
    (select h.id from job h where h.limit_key = k.limit_key and h.stage = {leased}
        and h.lease_expires_at > clock() limit 1),
    (select coalesce(sum(s.starts), 0) from rate_usage s
     where s.name = 'k/' || k.limit_key and s.slot between {slot} - {rate_slots} and {slot})
from (select :key as limit_key) k
left join key_limit r on r.key = {rule_key}
