-- A wait that looks for its signal and a delivery that looks for waits take turns, or each could miss the other.
-- Taken before all row locks, in one order.
select pg_advisory_xact_lock(hashtextextended(name, {schema_key} + 2))
from (select name from json_to_recordset(:rows::json) as g(name text) order by name) n
