-- PostgreSQL only, where each statement that writes a job opens every index of the table.
select 1;
