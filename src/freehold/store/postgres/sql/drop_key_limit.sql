-- The row of a declared limit stays, without a limit: otherwise the next worker would set it again.
with kept as (
    update {schema}.key_limit set max_leases = null, rate_starts = null, rate_seconds = null
    where key = :key::text and declared is not null
)
delete from {schema}.key_limit where key = :key::text and declared is null
