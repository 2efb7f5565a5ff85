-- The tenant is on its new shard. The old shard is remembered until its schema is dropped.
update tenant
set state = :state, note = :note, shard = moving_to, moving_to = null,
    moved_from = nullif(shard, moving_to)
where name = :tenant and state = 'moving' and moving_to = :shard
returning name
