-- Leaves a stop request for the owner. A cancel outweighs a pause; a repeated request changes nothing.
with held as materialized (
    select j.id, j.attempt, j.stop_request from {schema}.job j
    where j.id = :id::bigint and {is_leased} and j.lease_token = :token::bigint
    for update
),
asked as (
    update {schema}.job
    set stop_request = :stop_request::text, stop_requested_by = :by::text, stop_request_reason = :reason::text
    where id = any (array(select id from held
                          where stop_request is null or (stop_request = 'pause' and :stop_request::text = 'cancel')))
    returning id, attempt, lease_owner, case when started_at is null then 'assigned' else 'running' end as state
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, :event::text, state, :by::text, :reason::text from asked
)
select id, (select pg_notify('freehold_{schema}', '!' || lease_owner) from asked) from held
