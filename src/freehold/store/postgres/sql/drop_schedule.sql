delete from {schema}.schedule where name = :schedule::text returning name
