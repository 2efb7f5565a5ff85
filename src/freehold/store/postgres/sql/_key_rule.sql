-- The rule for a limit_key: its own, else that of its class. Used as a lateral join. The row of a declared limit
-- that an operator removed is no rule.
select r.max_leases, r.rate_starts, r.rate_seconds from {schema}.key_limit r
    where r.key in (c.limit_key, split_part(c.limit_key, ':', 1) || ':*')
      and (r.max_leases is not null or r.rate_starts is not null)
    order by r.key <> c.limit_key limit 1
