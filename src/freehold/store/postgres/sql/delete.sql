-- Removes jobs that are as they were read, with their steps, events and log lines; never a leased one.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, seen_stage "char", seen_state text)
),
locked as materialized (
    select j.id from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given)) and j.stage = g.seen_stage and j.stage <> {leased}
    order by j.id for update of j
),
live as (
    delete from {schema}.job where id = any (array(select id from locked)) returning id, stage, policy
),
finished as (
    delete from {schema}.history h using given g
    where h.id = any (array(select id from given where seen_stage is null)) and g.id = h.id
      and h.state = g.seen_state
    returning h.id
),
deleted_events as (
    delete from {schema}.event
    where job_id = any (array(select id from live union all select id from finished))
),
noted as (
    delete from {schema}.job_log
    where job_id = any (array(select id from live union all select id from finished))
),
forgotten as (
    delete from {schema}.step
    where job_id = any (array(select id from live union all select id from finished))
),
counted as (
    -- A member that has not ended counts as canceled; one that has stays counted.
    insert into {schema}.flow_end (flow, node, canceled)
    select flow, node, count(*)
    from (select {flow_of} as flow, {node_of} as node from live where policy is not null and stage <> {failed}) member
    where flow is not null
    group by flow, node
),
left_alone as (
    insert into {schema}.flow_end (flow, cancels)
    select f.id, true
    from {schema}.flow f
    where f.parent_job = any (array(select id from live where policy is not null))
      and f.parent_job is not null and f.closed_at is null
)
select id from live union all select id from finished
