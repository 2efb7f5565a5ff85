-- The guard of a step, before all its changes: it is refused if the chunk was carried out, or if the
-- operation was stopped. The lock keeps both so until the commit.
insert into {schema}.bulk_step (operation, number, at)
select o.id, case when o.state = 'running' then :number::integer else 0 end, {schema}.clock()
from {schema}.bulk_operation o where o.id = :operation::bigint
for update
