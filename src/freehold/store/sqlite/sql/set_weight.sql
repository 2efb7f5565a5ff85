insert into queue (name, weight) values (:queue, :weight)
on conflict (name) do update set weight = excluded.weight
