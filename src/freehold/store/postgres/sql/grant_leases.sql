-- One limit over all tenants of this database: how many of the ready jobs this claim may lease. The setting
-- ends with the transaction; the claim that follows reads it.
select set_config('freehold.granted',
    coalesce({control}.grant_leases('{schema}', {schema}.count_ready(:queue::text, :wanted::integer))::text, ''),
    true)
