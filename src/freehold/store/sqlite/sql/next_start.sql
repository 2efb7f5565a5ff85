-- Seconds until a rate that is reached allows the next start: until so many of the oldest slots have left
-- the window that fewer than :starts starts remain in it.
with in_window as (
    select u.slot, u.starts
    from rate_usage u, (select cast(clock() * {rate_slots} / (:seconds * 1000000) as integer) as slot) now
    where u.name = :of and u.slot between now.slot - {rate_slots} and now.slot
)
select (min(o.slot) + {rate_slots} + 1) * :seconds / {rate_slots}.0 - clock() / 1000000.0
from in_window o
where (select coalesce(sum(n.starts), 0) from in_window n where n.slot > o.slot) < :starts
