-- A node waits no longer: it is released, or canceled.
update flow_node set waits = 0 where flow = :flow and number = :number and waits
returning number
