-- Members up to this id are canceled, or were asked to stop.
update {schema}.flow set reached = :reached::bigint where id = :flow::bigint and reached < :reached::bigint
returning id
