select id from {schema}.flow where due and id > :after::bigint order by due, id limit :limit::integer
