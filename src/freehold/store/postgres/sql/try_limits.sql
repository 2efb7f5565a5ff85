-- One claimer at a time counts against a limit; the others do not wait, but look elsewhere. The
-- setting ends with the transaction: it tells the claim that follows what was locked.
select set_config('freehold.limits', coalesce(string_agg(name, chr(10)), ''), true)
from json_to_recordset(:rows::json) as g(name text)
where pg_try_advisory_xact_lock(hashtextextended(name, {schema_key} + 1))
