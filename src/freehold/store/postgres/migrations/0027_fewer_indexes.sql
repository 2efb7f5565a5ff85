-- Every statement that writes a job opens and locks each index of the table, also those in which the job has no
-- entry. Two pairs of indexes with few entries become one index each.
drop index {schema}.job_parked, {schema}.job_lane_paused;
create index job_aside on {schema}.job (stage, task, parked_until) where stage in ({parked}, {lane_paused});
-- Only a leased job has an owner, and only one without an owner is woken: each reader names one half.
drop index {schema}.job_stop_request, {schema}.job_suspended;
create index job_stop_or_wait on {schema}.job (lease_owner, waits_for)
    where stop_request is not null or waits_for is not null;
