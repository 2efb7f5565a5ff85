select name from {schema}.signal where not delivered order by name limit :limit::integer
