-- A shorter retention of finished jobs, by queue or by task. Days before `scanned_to` have been scanned, and of
-- that day the jobs up to `scanned_id`; null: none yet.
create table {schema}.retention_rule (
    kind       text not null check (kind in ('queue', 'task')),
    name       text not null,
    days       double precision not null check (days >= 0),
    scanned_to timestamptz,
    scanned_id bigint not null default 0,
    primary key (kind, name)
);
