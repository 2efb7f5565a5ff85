-- Flows that closed longer ago than the history is kept, with all that belongs to them. A group goes with its
-- workflow, a gather not before the job that waits for it.
delete from flow_range where flow in {old_flows} or flow in (select id from flow where parent in {old_flows});

delete from flow_callback where flow in {old_flows} or flow in (select id from flow where parent in {old_flows});

delete from flow_node where flow in {old_flows} or flow in (select id from flow where parent in {old_flows});

delete from flow_edge where flow in {old_flows} or flow in (select id from flow where parent in {old_flows});

delete from flow_end where flow in {old_flows} or flow in (select id from flow where parent in {old_flows});

delete from flow where parent in {old_flows};

delete from flow where id in {old_flows} returning 1
