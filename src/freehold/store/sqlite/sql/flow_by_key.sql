select id from flow where held_key = :key and held_key is not null
