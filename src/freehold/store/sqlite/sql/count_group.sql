-- The end of a group, or its being open again, enters the worklist of its workflow, once for each change.
insert into flow_end (flow, node, succeeded, failed, canceled)
select f.parent, f.node, (f.state = 'succeeded') - (:counted_state is 'succeeded'), (f.state = 'failed') - (:counted_state is 'failed'),
    (f.state = 'canceled') - (:counted_state is 'canceled')
from flow f
where f.id = :flow and f.state = :state and f.counted_state is :counted_state and f.counted_state is not nullif(f.state, 'open')
returning flow;

update flow set counted_state = nullif(state, 'open') where id = :flow and state = :state and counted_state is :counted_state
