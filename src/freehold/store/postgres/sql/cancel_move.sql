-- The tenant moves back to where it is. The shard that may have a copy is remembered until that is dropped.
update {schema}.tenant
set moved_from = moving_to, moving_to = shard, note = :note::text
where name = :tenant::text and state = 'moving' and shard = :shard::text and moving_to <> shard
returning name
