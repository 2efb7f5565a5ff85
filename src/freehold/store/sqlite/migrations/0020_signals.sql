-- Signals: named values for handlers that wait for them. The first value of a name is kept until it expires.
-- A sweep delivers a signal to the jobs that wait for it.
create table signal (
    name       text primary key,
    value      text not null,
    at         integer not null,
    by         text,
    expires_at integer not null,
    delivered  integer not null default 0
) without rowid;
create index signal_undelivered on signal (name) where not delivered;
create index signal_expiry on signal (expires_at);

-- Without the stages, which are those of `job_due`: a statement that names them would read all delayed jobs.
drop index job_suspended;
create index job_suspended on job (waits_for) where waits_for is not null;
