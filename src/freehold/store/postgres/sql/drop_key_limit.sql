delete from {schema}.key_limit where key = :key::text
