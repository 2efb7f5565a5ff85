-- Callers with one key take turns until their transactions end.
insert into {schema}.throttle as w (key, next_at)
select key, {schema}.clock() from json_to_recordset(:rows::json) as g(key text)
order by key
on conflict (key) do update set next_at = w.next_at
