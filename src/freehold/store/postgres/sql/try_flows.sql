-- One fold of a flow at a time; the others do not wait for it. The setting ends with the transaction; the
-- statements that follow read which flows were locked.
select set_config('freehold.flows', coalesce(string_agg(flow::text, ','), ''), true)
from json_to_recordset(:rows::json) as g(flow bigint)
where pg_try_advisory_xact_lock(hashtextextended('flow/' || flow, {schema_key} + 3))
