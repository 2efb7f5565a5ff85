-- Jobs that wait for their limit_key, and heads of paused lanes: `job_counts` has neither. A function of
-- its own, so that programs of the version before still find `job_counts` as they know it. Its settings
-- have the same reason as those of `job_counts`.
create function {schema}.held_back_counts(bound integer, out limited bigint, out lane_paused bigint)
    returns record
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select
        (select count(*) from (select from {schema}.job where stage = {limited} limit held_back_counts.bound) x),
        (select count(*) from (select from {schema}.job
            where target is not null and stage in ({lane_head}, {parked}, {leased}, {backoff}, {paused},
                {failed}, {limited}, {lane_paused}) and stage = {lane_paused} limit held_back_counts.bound) x)
    $$;
