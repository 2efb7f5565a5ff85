-- Stops or resumes an operation, and records it. Waits for a step that is being written.
with changed as (
    update {schema}.bulk_operation set state = :state::text
    where id = :operation::bigint and state = :seen_state::text
    returning id
),
audited as (
    insert into {schema}.audit (at, by, via, verb, kind, subject, reason, before, after)
    select {schema}.clock(), :by::text, :via::text, :verb::text, 'bulk', id::text, :reason::text,
        json_build_object('state', :seen_state::text), json_build_object('state', :state::text)
    from changed
)
select id from changed
