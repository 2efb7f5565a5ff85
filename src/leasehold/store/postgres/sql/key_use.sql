-- How a limit_key stands: its rule, its live leases, who waits, and whose lease ends first.
select r.max_leases, r.rate_starts, r.rate_seconds,
    {schema}.count_key(c.limit_key, 10000),
    (select count(*) from (select from {schema}.job j
        where j.limit_key = c.limit_key and j.stage = 'l' limit 10000) x),
    (select j.id from {schema}.job j
     where j.limit_key = c.limit_key and j.limit_key is not null and j.stage in ('r','R','h')
       and j.stage = 'h' and j.lease_expires_at > {schema}.clock()
     order by j.lease_expires_at limit 1)
from (select :key::text as limit_key) c left join lateral ({key_rule}) r on true
