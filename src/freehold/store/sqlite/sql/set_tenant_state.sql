-- A moving tenant has to end its move first. A process that saw another state changes nothing.
update tenant set state = :state, note = :note
where name = :tenant and state <> 'moving'
    and (:before is null or state = :before)
returning name
