-- `transition` for jobs of which some are members of flows: the worklist gets the differences of their states. A
-- failed job that blocks its lane has ended for its flow.
with {transitioning},
counted as (
    insert into {schema}.flow_end (flow, node, succeeded, failed, canceled)
    select flow, node, count(*) filter (where state = 'succeeded'),
        count(*) filter (where state = 'failed') - count(*) filter (where stage = {failed}),
        count(*) filter (where state = 'canceled')
    from (select {flow_of} as flow, {node_of} as node, state, stage from fit) member
    where flow is not null and (state in ('succeeded', 'failed', 'canceled') or stage = {failed})
    group by flow, node
)
select id, unchanged and request_unchanged, unchanged, stop_request, stop_requested_by, new_reason from compared
