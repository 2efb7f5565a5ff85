-- All tenants of this database share one limit: how many may this claim take, of what is ready? The
-- setting ends with the transaction: it tells the claim that follows.
select set_config('freehold.granted',
    coalesce({control}.grant_leases('{schema}', {schema}.count_ready(:queue::text, :wanted::integer))::text, ''),
    true)
