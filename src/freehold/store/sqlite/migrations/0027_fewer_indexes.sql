-- PostgreSQL only: the conditions of two partial indexes become one there, which SQLite's planner would not use.
select 1;
