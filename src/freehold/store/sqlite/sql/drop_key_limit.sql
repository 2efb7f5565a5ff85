-- The row of a declared limit stays, without a limit: otherwise the next worker would set it again.
update key_limit set max_leases = null, rate_starts = null, rate_seconds = null
where key = :key and declared is not null;

delete from key_limit where key = :key and declared is null
