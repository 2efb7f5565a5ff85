-- Repeating an interrupted move is allowed.
update {schema}.tenant set state = 'moving', moving_to = :shard::text, note = :note::text
where name = :tenant::text and moved_from is null
  and (state <> 'moving' or moving_to = :shard::text)
returning name
