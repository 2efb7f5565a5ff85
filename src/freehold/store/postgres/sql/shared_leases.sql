-- The limit over all tenants of this database, whether this schema sets it, and the live leases of each
-- tenant ('': the control schema itself).
select q.max_leases, '{schema}' = '{control}', substr(l.schema, length('{control}_t_') + 1), l.live
from {control}.queue q left join {control}.leases_by_schema() l on l.live > 0
where q.name = '*' and q.max_leases is not null
order by l.live desc, l.schema
