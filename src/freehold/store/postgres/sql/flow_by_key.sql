select id from {schema}.flow where held_key = :key::text and held_key is not null
