select id from flow where due order by id limit :limit
