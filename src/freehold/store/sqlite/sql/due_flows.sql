select id from flow where due and id > :after order by id limit :limit
