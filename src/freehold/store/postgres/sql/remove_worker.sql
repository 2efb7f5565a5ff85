delete from {schema}.worker where owner = :owner::text
