select id from {schema}.flow where due order by due, id limit :limit::integer
