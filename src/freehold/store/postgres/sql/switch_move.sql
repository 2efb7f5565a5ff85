-- The copy is the tenant from now on. The old shard is remembered until its retired schema is dropped.
update {schema}.tenant
set shard = moving_to, moved_from = shard
where name = :tenant::text and state = 'moving' and moving_to = :shard::text and moving_to <> shard
returning name
