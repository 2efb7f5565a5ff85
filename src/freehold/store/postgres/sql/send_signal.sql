-- The first value of a name is kept, until it expires. Only adds a row: a caller's transaction blocks no worker.
insert into {schema}.signal as s (name, value, at, by, expires_at)
select :name::text, :value::json, t.now, :by::text, t.now + make_interval(secs => :keep_seconds::double precision)
from (select {schema}.clock() as now) t
on conflict (name) do update set value = excluded.value, at = excluded.at, by = excluded.by,
    expires_at = excluded.expires_at, delivered = false
where s.expires_at <= excluded.at
returning 1
