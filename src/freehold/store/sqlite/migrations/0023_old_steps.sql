-- Retention looks for steps of deleted jobs once for each day that the history loses, in windows of bounded size:
-- days before `scanned_to` are done; of the next search the steps up to (at, job_id) in this order.
create table step_scan (
    only_row   integer primary key check (only_row = 1),
    scanned_to integer not null,
    at         integer not null,
    job_id     integer not null
);
create index step_age on step (at, job_id);
drop index step_at;
