-- A rule that changes scans again from the first day.
insert into retention_rule (kind, name, days)
select :kind, :name, :days where :days is not null
on conflict (kind, name) do update set days = excluded.days, scanned_to = null, scanned_id = 0;

delete from retention_rule where kind = :kind and name = :name and :days is null
