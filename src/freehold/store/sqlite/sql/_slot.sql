cast(clock() * {rate_slots} / (r.rate_seconds * 1000000) as integer)
