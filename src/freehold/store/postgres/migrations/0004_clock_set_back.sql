-- Starts in slots that lie ahead were counted before the clock was set back: they do not count.
create or replace function {schema}.limit_remaining(name text, live integer, max_leases integer,
    rate_starts integer, rate_seconds double precision) returns integer
    language sql volatile
    as $$
    select case when max_leases is null and rate_starts is null then null
        else greatest(0, least(max_leases - live, rate_starts - (
            select coalesce(sum(s.starts), 0)::integer
            from {schema}.rate_usage s, (select {schema}.rate_slot(rate_seconds) as slot) now
            where s.name = limit_remaining.name and s.slot between now.slot - 20 and now.slot))) end
    $$;
