delete from rate_usage where name = 'q/' || :queue;

insert into queue (name, max_leases, rate_starts, rate_seconds)
values (:queue, :max_leases, :rate_starts, :rate_seconds)
on conflict (name) do update
set max_leases = excluded.max_leases, rate_starts = excluded.rate_starts,
    rate_seconds = excluded.rate_seconds
