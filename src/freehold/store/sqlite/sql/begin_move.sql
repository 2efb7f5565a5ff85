-- Also again, where it was interrupted.
update tenant set state = 'moving', moving_to = :place, note = :note
where name = :tenant and moved_from is null
  and (state <> 'moving' or moving_to = :place)
returning name
