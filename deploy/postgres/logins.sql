-- Two users with passwords, for compose.yaml: one migrates, one runs workers and the API. Run by psql as
-- the administrator, after roles.sql; it can be repeated, and then sets the passwords again.
\getenv owner_password OWNER_PASSWORD
\getenv worker_password WORKER_PASSWORD

select 'create role freehold_owner_login login in role freehold_owner'
where not exists (select from pg_roles where rolname = 'freehold_owner_login') \gexec
select 'create role freehold_worker_login login in role freehold_worker'
where not exists (select from pg_roles where rolname = 'freehold_worker_login') \gexec

-- All tables belong to one role, whichever user migrates.
alter role freehold_owner_login set role = freehold_owner;
alter role freehold_owner_login password :'owner_password';
alter role freehold_worker_login password :'worker_password';
