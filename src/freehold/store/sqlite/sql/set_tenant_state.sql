-- A moving tenant has to end its move first.
update tenant set state = :state, note = :note
where name = :tenant and state <> 'moving'
returning name
