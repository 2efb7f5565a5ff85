delete from {schema}.lane where target = :target::text
returning target
