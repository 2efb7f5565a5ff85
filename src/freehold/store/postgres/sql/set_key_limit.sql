with forgotten as (
    delete from {schema}.rate_usage
    where name = 'k/' || :key::text
       or (right(:key::text, 2) = ':*' and starts_with(name, 'k/' || rtrim(:key::text, '*')))
)
insert into {schema}.key_limit (key, max_leases, rate_starts, rate_seconds)
values (:key::text, :max_leases::integer, :rate_starts::integer, :rate_seconds::double precision)
on conflict (key) do update
set max_leases = excluded.max_leases, rate_starts = excluded.rate_starts,
    rate_seconds = excluded.rate_seconds
