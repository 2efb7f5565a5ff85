-- The jobs that wait with these keys.
with standbys as materialized ({standbys}),
given as (
    select * from json_to_recordset(:rows::json) as g(position integer, waiting_key text)
)
select g.position, j.id, j.created_at
from {schema}.job j join given g on g.waiting_key = j.waiting_key cross join standbys
where j.waiting_key = any (array(select waiting_key from given)) and j.stage <> {leased}
