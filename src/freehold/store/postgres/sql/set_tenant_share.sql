update {schema}.tenant set weight = :weight::real, max_slots = :max_slots::integer
where name = :tenant::text
returning name
