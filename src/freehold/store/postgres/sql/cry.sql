-- Tells those who listen, and those who enqueue that they were told. Never inside a longer transaction: it
-- would keep others from doing the same.
with told as (
    insert into {schema}.told as t (hint, at)
    select hint, {schema}.clock() from json_to_recordset(:rows::json) as g(hint text)
    on conflict (hint) do update set at = excluded.at
)
select pg_notify('freehold_{schema}', hint)
from json_to_recordset(:rows::json) as g(hint text)
