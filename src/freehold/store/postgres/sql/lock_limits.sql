-- Freeing room for a key waits for a claimer that is counting it, or each could miss the other's change.
-- Locks are taken in one order, and after all others.
select pg_advisory_xact_lock(hashtextextended(name, {schema_key} + 1))
from (select name from json_to_recordset(:rows::json) as g(name text) order by name) n
