select key, max_leases, rate_starts, rate_seconds, declared from key_limit order by key
