-- Open flows, which are counted and looked through: among the newest ones, old ones were not found. Groups are shown with
-- their workflow.
create index flow_open on flow (closed_at, id) where closed_at is null and kind <> 'group';

drop index flow_node_name;
create unique index flow_node_name on flow_node (name, flow);
