insert into {schema}.queue (name, weight) values (:queue::text, :weight::real)
on conflict (name) do update set weight = excluded.weight
