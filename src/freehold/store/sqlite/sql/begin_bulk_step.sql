-- The guard of a step, before all its changes: it is refused if the chunk was carried out, or if the
-- operation was stopped.
insert into bulk_step (operation, number, at)
select id, case when state = 'running' then :number else 0 end, clock()
from bulk_operation where id = :operation
