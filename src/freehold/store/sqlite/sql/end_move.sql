-- From now on it lives there. What was left behind is remembered until it is gone.
update tenant
set state = :state, note = :note, place = moving_to, moving_to = null,
    moved_from = nullif(place, moving_to)
where name = :tenant and state = 'moving' and moving_to = :place
returning name
