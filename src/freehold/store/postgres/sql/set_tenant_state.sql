-- A moving tenant has to end its move first. A process that saw another state changes nothing.
update {schema}.tenant set state = :state::text, note = :note::text
where name = :tenant::text and state <> 'moving'
    and (:before::text is null or state = :before::text)
returning name
