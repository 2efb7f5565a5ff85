-- On its way to where it is. What was copied is remembered until it is gone.
update {schema}.tenant
set moved_from = coalesce(moved_from, nullif(moving_to, place)), moving_to = place,
    note = :note::text
where name = :tenant::text and state = 'moving'
returning moved_from
