-- Whoever frees room for a key waits for the claimer that is just counting, or both could miss what
-- the other did. In one order, and as the last thing that is waited for.
select pg_advisory_xact_lock(hashtextextended(name, {schema_key} + 1))
from (select name from json_to_recordset(:rows::json) as g(name text) order by name) n
