-- Pause and limits of a queue, and of all queues together, with their current use.
select q.name, q.paused_at, q.paused_by, q.pause_reason, q.paused_until,
    q.max_leases, q.rate_starts, q.rate_seconds,
    case when q.max_leases is not null then {schema}.count_leased(q.name, 10000) else 0 end,
    case when q.rate_seconds is not null then
        (select coalesce(sum(s.starts), 0)::integer from {schema}.rate_usage s
         where s.name = 'q/' || q.name
           and s.slot between {schema}.rate_slot(q.rate_seconds) - {rate_slots}
               and {schema}.rate_slot(q.rate_seconds)) else 0 end,
    case when q.max_leases is null then null
        when q.name = '*' then (select j.id from {schema}.job j
            where j.stage = {leased} and j.lease_expires_at > {schema}.clock() limit 1)
        else (select j.id from {schema}.job j
            where j.stage = {leased} and j.queue = q.name and j.lease_expires_at > {schema}.clock()
            order by j.queue, j.lease_expires_at limit 1) end
from {schema}.queue q
where q.name in (:queue::text, '*')
order by q.name desc
