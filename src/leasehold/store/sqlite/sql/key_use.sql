-- How a limit_key stands: its rule, its live leases, who waits, and whose lease ends first.
select r.max_leases, r.rate_starts, r.rate_seconds,
    (select count(*) from job h where h.limit_key = k.limit_key and h.stage = 'h'
        and h.lease_expires_at > clock()),
    (select count(*) from job w where w.limit_key = k.limit_key and w.stage = 'l'),
    (select h.id from job h where h.limit_key = k.limit_key and h.stage = 'h'
        and h.lease_expires_at > clock() order by h.lease_expires_at limit 1)
from (select :key as limit_key) k
left join key_limit r on r.key = {rule_key}
