-- Open flows, which are counted and looked through: among the newest ones, old ones were not found. Groups are shown with
-- their workflow. By `closed_at` first, as `flow_due`: a plan that reads the primary key would read all flows. A fold
-- changes none of these columns before it closes the flow.
create index flow_open on {schema}.flow (closed_at, id) where closed_at is null and kind <> 'group';

-- By the name first: with two indexes that begin with the flow, a plan of an empty table reads all nodes of a flow to find
-- one by its number.
drop index {schema}.flow_node_name;
create unique index flow_node_name on {schema}.flow_node (name, flow);
