-- properties: takes_long
-- Drops expired days, and creates the partitions of the next ones.
select {schema}.rotate_partitions(:history_days::double precision, 7)
