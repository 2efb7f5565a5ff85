-- A limit over all tenants starts, and their live leases are not known yet. Takes the lock of grants.
with turn as materialized (
    select pg_advisory_xact_lock(hashtextextended('leases of {schema}', 0))
)
insert into {schema}.shared_lease_upper_bound (schema, at_most, counted_at)
select nspname, 1000000, {schema}.clock() from pg_namespace, turn
where '{schema}' = '{control}' and (nspname = '{schema}' or starts_with(nspname, '{schema}_t_'))
on conflict (schema) do update set at_most = excluded.at_most
