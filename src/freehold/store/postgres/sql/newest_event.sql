select coalesce((select id from {schema}.event order by id desc limit 1), 0)
