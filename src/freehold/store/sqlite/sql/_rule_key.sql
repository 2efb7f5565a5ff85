-- The rule for a limit_key: its own, else that of its class. No key of a job ends like a class.
-- The row of a declared limit that an operator removed is no rule.
(select key from key_limit
    where key in (k.limit_key, substr(k.limit_key, 1, instr(k.limit_key || ':', ':') - 1) || ':*')
      and (max_leases is not null or rate_starts is not null)
    order by key like '%:*' limit 1)
