select
    (select count(*) from (select from {schema}.job where stage in ('r','R') limit :bound::integer) x),
    (select count(*) from (select from {schema}.job where stage in ('w','b') limit :bound::integer) x),
    (select count(*) from (select from {schema}.job
        where target is not null and stage in ('r','f','q') and stage = 'f' limit :bound::integer) x),
    (select count(*) from (select from {schema}.job where stage = 'h' limit :bound::integer) x),
    (select count(*) from (select from {schema}.job
        where stage in ('n','p','q','x','u') and stage in ('p','q') limit :bound::integer) x),
    (select count(*) from (select from {schema}.job
        where stage in ('n','p','q','x','u') and stage = 'x' limit :bound::integer) x),
    (select count(*) from (select from {schema}.job
        where stage in ('n','p','q','x','u') and stage = 'n' limit :bound::integer) x),
    (select count(*) from (select from {schema}.job where stage = 'u' limit :bound::integer) x)
