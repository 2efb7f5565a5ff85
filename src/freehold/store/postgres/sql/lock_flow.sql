-- For a rare change of a whole workflow: waits for the folds of others. Its row is locked before its nodes.
select set_config('freehold.flows', :flow::text, true),
    pg_advisory_xact_lock(hashtextextended('flow/' || :flow::text, {schema_key} + 3)),
    (select f.id from {schema}.flow f where f.id = :flow::bigint for no key update)
