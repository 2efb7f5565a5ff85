-- Notifies listeners, and records it for other producers. Never inside a longer transaction: its row lock
-- would make other producers wait.
with recorded as (
    insert into {schema}.last_notified as n (topic, at)
    select topic, {schema}.clock() from json_to_recordset(:rows::json) as g(topic text)
    on conflict (topic) do update set at = excluded.at
)
select pg_notify('freehold_{schema}', topic)
from json_to_recordset(:rows::json) as g(topic text)
