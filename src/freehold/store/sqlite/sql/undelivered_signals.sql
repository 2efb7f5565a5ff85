select name from signal where not delivered order by name limit :limit
