-- A rule that changes scans again from the first day.
with changed as (
    insert into {schema}.retention_rule as r (kind, name, days)
    select :kind::text, :name::text, :days::double precision where :days::double precision is not null
    on conflict (kind, name) do update set days = excluded.days, scanned_to = null, scanned_id = 0
    returning 1
)
delete from {schema}.retention_rule
where kind = :kind::text and name = :name::text and :days::double precision is null
