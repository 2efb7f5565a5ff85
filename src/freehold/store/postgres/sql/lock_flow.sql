-- For a rare change of a whole workflow: waits for the folds of others.
select set_config('freehold.flows', :flow::text, true), pg_advisory_xact_lock(hashtextextended('flow/' || :flow::text, {schema_key} + 3))
