-- The tenant is on its new shard. The old shard is remembered until its schema is dropped.
update {schema}.tenant
set state = :state::text, note = :note::text, shard = moving_to, moving_to = null,
    moved_from = nullif(shard, moving_to)
where name = :tenant::text and state = 'moving' and moving_to = :shard::text
returning name
