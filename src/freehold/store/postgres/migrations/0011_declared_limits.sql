-- The limit that the code of a task declares for its key, as text; null: no task declares it. A worker writes
-- the limit only if its declaration is another, so that an operator's change outlives a deploy.
alter table {schema}.key_limit add column declared text;
