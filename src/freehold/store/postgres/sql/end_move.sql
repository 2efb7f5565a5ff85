-- The tenant is usable on its shard.
update {schema}.tenant
set state = :state::text, note = :note::text, moving_to = null
where name = :tenant::text and state = 'moving' and shard = :shard::text and moving_to = shard
returning name
