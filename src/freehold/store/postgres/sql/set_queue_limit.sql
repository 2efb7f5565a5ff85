with forgotten as (delete from {schema}.rate_usage where name = 'q/' || :queue::text)
insert into {schema}.queue (name, max_leases, rate_starts, rate_seconds)
values (:queue::text, :max_leases::integer, :rate_starts::integer, :rate_seconds::double precision)
on conflict (name) do update
set max_leases = excluded.max_leases, rate_starts = excluded.rate_starts,
    rate_seconds = excluded.rate_seconds
