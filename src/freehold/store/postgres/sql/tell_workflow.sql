-- The end of a group, or its being open again, enters the worklist of its workflow, once for each change.
with moved as (
    update {schema}.flow f set told = nullif(f.state, 'open')
    where f.id = :flow::bigint and f.state = :state::text and f.told is not distinct from :told::text
      and f.told is distinct from nullif(f.state, 'open')
    returning f.parent, f.node, f.told
)
insert into {schema}.flow_end (flow, node, succeeded, failed, canceled)
select parent, node,
    coalesce(told = 'succeeded', false)::integer - coalesce(:told::text = 'succeeded', false)::integer,
    coalesce(told = 'failed', false)::integer - coalesce(:told::text = 'failed', false)::integer,
    coalesce(told = 'canceled', false)::integer - coalesce(:told::text = 'canceled', false)::integer
from moved
returning flow
