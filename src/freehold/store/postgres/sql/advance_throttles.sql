-- A job that was just stored is due at or after the end of the window, and opens the next one. One that waited
-- already did so before.
with given as (
    select * from json_to_recordset(:rows::json) as g(key text, seconds double precision)
),
waiting as materialized (
    select j.waiting_key, j.run_at + make_interval(secs => g.seconds) as next_at, j.run_at
    from {schema}.job j join given g on g.key = j.waiting_key
    where j.waiting_key = any (array(select key from given)) and j.stage <> {leased}
)
update {schema}.throttle w set next_at = j.next_at
from waiting j
where w.key = any (array(select key from given)) and w.key = j.waiting_key and j.run_at >= w.next_at
