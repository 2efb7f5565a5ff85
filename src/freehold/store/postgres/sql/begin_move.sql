-- Also again, where it was interrupted.
update {schema}.tenant set state = 'moving', moving_to = :place::text, note = :note::text
where name = :tenant::text and moved_from is null
  and (state <> 'moving' or moving_to = :place::text)
returning name
