-- The tenant moves back to where it is. The shard with the copy is remembered until that is dropped.
update {schema}.tenant
set moved_from = coalesce(moved_from, nullif(moving_to, shard)), moving_to = shard,
    note = :note::text
where name = :tenant::text and state = 'moving'
returning moved_from
