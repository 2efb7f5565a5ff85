-- The end of a group, or its being open again, enters the worklist of its workflow, once for each change.
with moved as (
    update {schema}.flow f set counted_state = nullif(f.state, 'open')
    where f.id = :flow::bigint and f.state = :state::text and f.counted_state is not distinct from :counted_state::text
      and f.counted_state is distinct from nullif(f.state, 'open')
    returning f.parent, f.node, f.counted_state
)
insert into {schema}.flow_end (flow, node, succeeded, failed, canceled)
select parent, node,
    coalesce(counted_state = 'succeeded', false)::integer - coalesce(:counted_state::text = 'succeeded', false)::integer,
    coalesce(counted_state = 'failed', false)::integer - coalesce(:counted_state::text = 'failed', false)::integer,
    coalesce(counted_state = 'canceled', false)::integer - coalesce(:counted_state::text = 'canceled', false)::integer
from moved
returning flow
