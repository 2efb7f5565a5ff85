delete from key_limit where key = :key
