update {schema}.tenant set moved_from = null where name = :tenant::text returning name
