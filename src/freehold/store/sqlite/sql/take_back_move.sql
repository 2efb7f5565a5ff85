-- On its way to where it is. What was copied is remembered until it is gone.
update tenant
set moved_from = coalesce(moved_from, nullif(moving_to, place)), moving_to = place,
    note = :note
where name = :tenant and state = 'moving'
returning moved_from
