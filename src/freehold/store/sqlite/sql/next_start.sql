-- Seconds until a rate that is reached allows the next start: until so many of the oldest slots have left
-- the window that fewer than :starts starts remain in it.
select (min(o.slot) + {rate_slots} + 1) * :seconds / {rate_slots}.0 - clock() / 1000000.0
from rate_usage o
where o.name = :of
  and o.slot between cast(clock() * {rate_slots} / (:seconds * 1000000) as integer) - {rate_slots}
      and cast(clock() * {rate_slots} / (:seconds * 1000000) as integer)
  and (select coalesce(sum(n.starts), 0) from rate_usage n
       where n.name = o.name and n.slot > o.slot) < :starts
