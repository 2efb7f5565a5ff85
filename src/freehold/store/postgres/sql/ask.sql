-- Leave a request for the owner. A cancel outweighs a pause; asking twice changes nothing.
with held as materialized (
    select j.id, j.attempt, j.request from {schema}.job j
    where j.id = :id::bigint and {is_held} and j.lease_token = :token::bigint
    for update
),
asked as (
    update {schema}.job
    set request = :request::"char", request_by = :by::text, request_reason = :reason::text
    where id = any (array(select id from held
                          where request is null or (request = 'p' and :request::"char" = 'c')))
    returning id, attempt, lease_owner, case when started_at is null then 'assigned' else 'running' end as state
),
told as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, :event::text, state, :by::text, :reason::text from asked
)
select id, (select pg_notify('freehold_{schema}', '!' || lease_owner) from asked) from held
