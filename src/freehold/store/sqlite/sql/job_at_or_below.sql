-- The job with the largest id up to this one, live or finished, and when it was created.
select id, created_at from (
    select * from (select id, created_at from job where id <= :id order by id desc limit 1)
    union all
    select * from (select id, created_at from history where id <= :id order by id desc limit 1))
order by id desc limit 1
