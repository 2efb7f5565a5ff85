delete from rate_usage
where name = 'k/' || :key
   or (:key like '%:*' and substr(name, 1, length(:key) + 1) = 'k/' || rtrim(:key, '*'));

insert into key_limit (key, max_leases, rate_starts, rate_seconds)
values (:key, :max_leases, :rate_starts, :rate_seconds)
on conflict (key) do update
set max_leases = excluded.max_leases, rate_starts = excluded.rate_starts,
    rate_seconds = excluded.rate_seconds
