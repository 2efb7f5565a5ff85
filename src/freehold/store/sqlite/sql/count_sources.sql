-- Followers count the sources that have ended, or are open again.
update flow_node
set open_sources = open_sources + e.opened, bad_sources = bad_sources + e.bad
from (select d.target, sum((n.state is null) - (n.counted_state is null)) as opened,
        sum(coalesce(n.state in ('failed', 'canceled'), 0) - coalesce(n.counted_state in ('failed', 'canceled'), 0)) as bad
      from (select distinct source, target from flow_edge where flow = :flow) d
      join flow_node n on n.flow = :flow and n.number = d.source
      where n.state is not n.counted_state
      group by d.target) e
where flow = :flow and number = e.target;

update flow_node set counted_state = state where flow = :flow and state is not counted_state;

update flow set due = 1, change = change + 1
where id = :flow and exists (select 1 from flow_node n where n.flow = :flow and n.waits and {node_is_due})
