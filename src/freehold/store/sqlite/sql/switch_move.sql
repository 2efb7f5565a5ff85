-- The copy is the tenant from now on. The old shard is remembered until its retired schema is dropped.
update tenant
set shard = moving_to, moved_from = shard
where name = :tenant and state = 'moving' and moving_to = :shard and moving_to <> shard
returning name
