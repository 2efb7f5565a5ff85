-- A node waits no longer: it is released, or canceled.
update {schema}.flow_node set waits = false where flow = :flow::bigint and number = :number::integer and waits
returning number
