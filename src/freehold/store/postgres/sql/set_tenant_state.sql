-- A moving tenant has to end its move first.
update {schema}.tenant set state = :state::text, note = :note::text
where name = :tenant::text and state <> 'moving'
returning name
