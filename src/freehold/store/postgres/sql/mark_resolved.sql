-- Failed jobs are resolved: they stay finished, as canceled.
with given as (
    select id from json_to_recordset(:rows::json) as g(id bigint)
),
done as (
    update {schema}.history set state = 'canceled', reason = coalesce(:reason::text, reason)
    where id = any (array(select id from given)) and state = 'failed'
    returning id, attempt, policy
),
counted as (
    insert into {schema}.flow_end (flow, node, failed, canceled)
    select flow, node, -count(*), count(*)
    from (select {flow_of} as flow, {node_of} as node from done where policy is not null) member
    where flow is not null
    group by flow, node
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, 'canceled', 'canceled', :by::text, :reason::text
    from done order by id
)
select id, true from done
