-- Leave a request for the owner. A cancel outweighs a pause; asking twice changes nothing.
with held as materialized (
    select id, attempt, request from {schema}.job
    where id = :id::bigint and stage = 'h' and lease_token = :token::bigint
    for update
),
asked as (
    update {schema}.job
    set request = :request::"char", request_by = :by::text, request_reason = :reason::text
    where id = any (array(select id from held
                          where request is null or (request = 'p' and :request::"char" = 'c')))
    returning id, attempt, case when started_at is null then 'assigned' else 'running' end as state
),
told as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, :event::text, state, :by::text, :reason::text from asked
)
select id from held
