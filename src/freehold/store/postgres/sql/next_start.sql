-- Seconds until a rate that is reached allows the next start: until so many of the oldest slots have left
-- the window that fewer than :starts starts remain in it.
select (min(o.slot) + {rate_slots} + 1) * :seconds::double precision / {rate_slots}
    - extract(epoch from {schema}.clock())::double precision
from {schema}.rate_usage o
where o.name = :of::text
  and o.slot between {schema}.rate_slot(:seconds::double precision) - {rate_slots}
      and {schema}.rate_slot(:seconds::double precision)
  and (select coalesce(sum(n.starts), 0) from {schema}.rate_usage n
       where n.name = o.name and n.slot > o.slot) < :starts::integer
