-- Nothing is left to act upon, unless the flow has changed since it was read.
update {schema}.flow set due = false where id = :flow::bigint and change = :change::bigint and due
returning id
