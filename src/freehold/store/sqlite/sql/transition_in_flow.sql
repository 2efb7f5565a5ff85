-- `transition` for jobs of which some are members of flows: the worklist gets the differences of their states. A
-- failed job that blocks its lane has ended for its flow.
{comparing};

insert into flow_end (flow, node, succeeded, failed, canceled)
select {flow_of}, {node_of}, :state = 'succeeded', (:state = 'failed') - (stage = {failed}), :state = 'canceled'
from job
where id = :id and {unchanged_since_read} and stop_request is :stop_request and {flow_of} is not null
    and (:state in ('succeeded', 'failed', 'canceled') or stage = {failed});

{moving}
