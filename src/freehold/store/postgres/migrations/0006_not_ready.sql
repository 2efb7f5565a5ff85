-- Jobs that are neither ready nor leased, by queue: delayed, backing off, behind others of their lane,
-- limited, parked, paused, failed or pending. A plain job is never in this index. coalesce() hides it from
-- all statements but those that repeat it word for word (sql/_is_not_ready.sql): the others have
-- narrower indexes.
create index job_not_ready on {schema}.job (queue)
    where coalesce(stage not in ({ready}, {lane_head}, {leased}), false);

-- How many of them a queue has, up to a bound. Its settings have the same reason as those of `count_ready`.
create function {schema}.count_not_ready(queue text, bound integer) returns integer
    language sql stable
    set enable_bitmapscan = off
    set enable_seqscan = off
    as $$
    select count(*)::integer from (
        select from {schema}.job j
        where j.queue = count_not_ready.queue and coalesce(stage not in ({ready}, {lane_head}, {leased}), false)
        limit count_not_ready.bound) waiting
    $$;
