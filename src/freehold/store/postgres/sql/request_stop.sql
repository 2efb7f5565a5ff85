-- Leaves stop requests for the owners. A cancel outweighs a pause; a repeated request changes nothing.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, token bigint, stop_request text, event text)
),
held as materialized (
    select j.id, j.stop_request as present, g.stop_request, g.event from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given)) and {is_leased} and j.lease_token = g.token
    order by j.id for update of j
),
asked as (
    update {schema}.job j
    set stop_request = h.stop_request, stop_requested_by = :by::text, stop_request_reason = :reason::text
    from held h
    where j.id = any (array(select id from held)) and h.id = j.id
      and (h.present is null or (h.present = 'pause' and h.stop_request = 'cancel'))
    returning j.id, j.attempt, j.lease_owner, h.event,
        case when j.started_at is null then 'assigned' else 'running' end as state
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, event, state, :by::text, :reason::text from asked order by id
),
notified as materialized (
    select pg_notify('freehold_{schema}', '!' || lease_owner) from (select distinct lease_owner from asked) o
)
select id, (select count(*) from notified) >= 0 from held
