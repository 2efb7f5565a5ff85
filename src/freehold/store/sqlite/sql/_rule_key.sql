-- The rule for a limit_key: its own, else that of its class. No key of a job ends like a class.
(select key from key_limit
    where key in (k.limit_key, substr(k.limit_key, 1, instr(k.limit_key || ':', ':') - 1) || ':*')
    order by key like '%:*' limit 1)
