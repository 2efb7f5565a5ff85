-- One claimer at a time counts against a limit; the others do not wait for it. The setting ends with the
-- transaction; the claim that follows reads which limits were locked.
select set_config('freehold.limits', coalesce(string_agg(name, chr(10)), ''), true)
from json_to_recordset(:rows::json) as g(name text)
where pg_try_advisory_xact_lock(hashtextextended(name, {schema_key} + 1))
