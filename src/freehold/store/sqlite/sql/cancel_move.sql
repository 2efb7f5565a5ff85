-- The tenant moves back to where it is. The shard with the copy is remembered until that is dropped.
update tenant
set moved_from = coalesce(moved_from, nullif(moving_to, shard)), moving_to = shard,
    note = :note
where name = :tenant and state = 'moving'
returning moved_from
