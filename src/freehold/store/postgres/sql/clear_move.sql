update {schema}.tenant set moved_from = null
where name = :tenant::text and state <> 'moving'
returning name
