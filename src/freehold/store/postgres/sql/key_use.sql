-- A limit_key: its rule, its live leases, one of them, and its recent starts.
select r.max_leases, r.rate_starts, r.rate_seconds,
    {schema}.count_key_leases(c.limit_key, 10000),
    (select j.id from {schema}.job j
     where j.limit_key = c.limit_key and j.limit_key is not null and j.stage in ({ready}, {lane_head}, {leased})
       and j.stage = {leased} and j.lease_expires_at > {schema}.clock() limit 1),
    case when r.rate_seconds is not null then
        (select coalesce(sum(s.starts), 0)::integer from {schema}.rate_usage s
         where s.name = 'k/' || c.limit_key
           and s.slot between {schema}.rate_slot(r.rate_seconds) - {rate_slots}
               and {schema}.rate_slot(r.rate_seconds)) else 0 end
from (select :key::text as limit_key) c left join lateral ({key_rule}) r on true
