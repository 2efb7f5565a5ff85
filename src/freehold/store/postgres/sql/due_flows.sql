select id from {schema}.flow where due order by id limit :limit::integer
