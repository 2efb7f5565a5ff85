-- `succeed` for jobs of which some are members of flows: their ends enter the worklist.
{succeeding};

insert into flow_end (flow, node, succeeded)
select {flow_of}, {node_of}, 1 from job where {lease_holds} and {flow_of} is not null;

delete from job where {lease_holds}
returning id
