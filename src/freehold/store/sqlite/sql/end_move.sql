-- The tenant is usable on its shard.
update tenant
set state = :state, note = :note, moving_to = null
where name = :tenant and state = 'moving' and shard = :shard and moving_to = shard
returning name
