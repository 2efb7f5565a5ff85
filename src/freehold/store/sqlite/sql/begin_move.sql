-- Repeating an interrupted move is allowed.
update tenant set state = 'moving', moving_to = :shard, note = :note
where name = :tenant and moved_from is null
  and (state <> 'moving' or moving_to = :shard)
returning name
