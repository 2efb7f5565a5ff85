-- The end of a group, or its being open again, enters the worklist of its workflow, once for each change.
insert into flow_end (flow, node, succeeded, failed, canceled)
select f.parent, f.node, (f.state = 'succeeded') - (:told is 'succeeded'), (f.state = 'failed') - (:told is 'failed'),
    (f.state = 'canceled') - (:told is 'canceled')
from flow f
where f.id = :flow and f.state = :state and f.told is :told and f.told is not nullif(f.state, 'open')
returning flow;

update flow set told = nullif(state, 'open') where id = :flow and state = :state and told is :told
