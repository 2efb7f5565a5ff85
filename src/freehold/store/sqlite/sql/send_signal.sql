-- The first value of a name is kept, until it expires.
insert into signal (name, value, at, by, expires_at)
select :name, :value, clock(), :by, clock() + cast(round(:keep_seconds * 1000000) as integer) where true
on conflict (name) do update set value = excluded.value, at = excluded.at, by = excluded.by,
    expires_at = excluded.expires_at, delivered = 0
where signal.expires_at <= excluded.at
returning 1
