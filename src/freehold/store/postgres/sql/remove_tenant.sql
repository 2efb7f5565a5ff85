delete from {schema}.tenant where name = :tenant::text returning name
