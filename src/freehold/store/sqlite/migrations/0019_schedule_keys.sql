-- On PostgreSQL, a rule for writers that are not the Python client. A file has none.
select 1;
