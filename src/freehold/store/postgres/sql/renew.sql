-- Extends leases. An expired lease is not renewed, even if its job was not recovered yet.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, token bigint)
),
held as materialized (
    {lease_holds} for no key update of j
)
update {schema}.job j
set heartbeat_at = t.now,
    lease_expires_at = t.now + make_interval(secs => :lease_seconds::double precision)
from (select {schema}.clock() as now) t
where j.id = any (array(select id from held))
returning j.id, j.stop_request
