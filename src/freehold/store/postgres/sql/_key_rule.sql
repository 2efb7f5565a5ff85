-- The rule for a limit_key: its own, else that of its class. Used as a lateral join.
select r.max_leases, r.rate_starts, r.rate_seconds from {schema}.key_limit r
    where r.key in (c.limit_key, split_part(c.limit_key, ':', 1) || ':*')
    order by r.key <> c.limit_key limit 1
