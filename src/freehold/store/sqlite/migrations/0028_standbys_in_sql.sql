-- On PostgreSQL, a wait for standbys in the function `enqueue`. A file has no such function, and no standby.
select 1;
