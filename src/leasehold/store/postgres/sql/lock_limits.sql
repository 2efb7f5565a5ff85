-- One claimer at a time counts against a limit; whoever frees room for a key waits its turn too.
-- In one order, before any row is locked.
select pg_advisory_xact_lock(hashtextextended(name, {schema_key} + 1))
from (select name from json_to_recordset(:rows::json) as g(name text) order by name) n
