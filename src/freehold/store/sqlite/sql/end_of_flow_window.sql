-- The last flow that a page has looked at, if its window was full.
select id from flow where id < :before order by id desc limit 1 offset :window - 1
