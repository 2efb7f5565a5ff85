-- Heads of paused lanes, which are counted for the dashboard every second. Without an index of their own each
-- count read the holders of all lanes.
create index job_lane_paused on {schema}.job (target) where stage = {lane_paused};
create or replace function {schema}.held_back_counts(bound integer, out limited bigint, out lane_paused bigint)
    returns record
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select
        (select count(*) from (select from {schema}.job where stage = {limited} limit held_back_counts.bound) x),
        (select count(*) from (select from {schema}.job where stage = {lane_paused} limit held_back_counts.bound) x)
    $$;
