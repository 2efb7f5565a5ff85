-- Whether there is any live job, in whatever stage. In the order of the ids, because a plan without an
-- order reads the whole file of the table, which never shrinks.
select (select id from {schema}.job order by id limit 1) is not null
