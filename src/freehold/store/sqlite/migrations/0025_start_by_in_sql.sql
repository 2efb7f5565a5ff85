-- On PostgreSQL, `start_by` in the function `enqueue`. A file has no such function.
select 1;
