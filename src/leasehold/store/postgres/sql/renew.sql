-- The sign of life. A lease that has run out is not revived, even if nobody took the job yet.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, token bigint)
),
held as materialized (
    select j.id from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given))
      and j.lease_token = g.token and j.lease_owner = :owner::text and {is_held}
      and j.lease_expires_at > {schema}.clock()
    order by j.id for no key update of j
)
update {schema}.job j
set heartbeat_at = t.now,
    lease_expires_at = t.now + make_interval(secs => :lease_seconds::double precision)
from (select {schema}.clock() as now) t
where j.id = any (array(select id from held))
returning j.id, j.request
