-- A parked job waits for a worker that knows its task, for as long as it takes; or, where its arguments do
-- not fit the code of the worker that claimed it, until this time. Set by the first such worker, and kept
-- while the job is claimed and parked again.
alter table job add column parked_until integer;
drop index job_parked;
create index job_parked on job (task, parked_until) where stage = {parked};
