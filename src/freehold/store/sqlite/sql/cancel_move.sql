-- The tenant moves back to where it is. The shard that may have a copy is remembered until that is dropped.
update tenant
set moved_from = moving_to, moving_to = shard, note = :note
where name = :tenant and state = 'moving' and shard = :shard and moving_to <> shard
returning name
