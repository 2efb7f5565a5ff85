-- From now on it lives there. What was left behind is remembered until it is gone.
update {schema}.tenant
set state = :state::text, note = :note::text, place = moving_to, moving_to = null,
    moved_from = nullif(place, moving_to)
where name = :tenant::text and state = 'moving' and moving_to = :place::text
returning name
