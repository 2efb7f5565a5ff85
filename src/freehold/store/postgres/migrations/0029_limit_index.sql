-- One index in the place of two, as in 0027: the jobs that count against a limit_key, and those that wait for it, in the
-- order of the claim. With the stage first, the keys of waiting jobs are found without those of others.
drop index {schema}.job_limit_key, {schema}.job_limited;
create index job_limit on {schema}.job (stage, limit_key, (-priority), id)
    where stage = {limited} or limit_key is not null and stage in ({ready}, {lane_head}, {leased});
