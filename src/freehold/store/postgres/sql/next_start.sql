-- Seconds until a rate that is reached allows the next start: until so many of the oldest slots have left
-- the window that fewer than :starts starts remain in it.
with in_window as (
    select u.slot, u.starts
    from {schema}.rate_usage u, (select {schema}.rate_slot(:seconds::double precision) as slot) now
    where u.name = :of::text and u.slot between now.slot - {rate_slots} and now.slot
)
select (min(o.slot) + {rate_slots} + 1) * :seconds::double precision / {rate_slots}
    - extract(epoch from {schema}.clock())::double precision
from in_window o
where (select coalesce(sum(n.starts), 0) from in_window n where n.slot > o.slot) < :starts::integer
