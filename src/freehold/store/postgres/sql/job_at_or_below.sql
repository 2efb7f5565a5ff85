-- The job with the largest id up to this one, live or finished, and when it was created.
select id, created_at from (
    (select id, created_at from {schema}.job where id <= :id::bigint order by id desc limit 1)
    union all
    (select id, created_at from {schema}.history where id <= :id::bigint order by id desc limit 1)) found
order by id desc limit 1
