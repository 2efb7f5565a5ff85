-- The last flow that a page has looked at, if its window was full.
select f.id from {schema}.flow f where f.id < :before::bigint order by f.id desc limit 1 offset :window::integer - 1
