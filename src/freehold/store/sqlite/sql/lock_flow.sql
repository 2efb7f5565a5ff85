-- Writers take turns.
select 1 where 0
