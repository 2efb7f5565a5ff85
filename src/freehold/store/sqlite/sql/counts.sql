select
    (select count(*) from (select 1 from job where stage in ('r','R') limit :bound)),
    (select count(*) from (select 1 from job where stage in ('w','b') limit :bound)),
    (select count(*) from (select 1 from job
        where target is not null and stage in ('r','f','q') and stage = 'f' limit :bound)),
    (select count(*) from (select 1 from job where stage = 'h' limit :bound)),
    (select count(*) from (select 1 from job
        where stage in ('n','p','q','x','u') and stage in ('p','q') limit :bound)),
    (select count(*) from (select 1 from job
        where stage in ('n','p','q','x','u') and stage = 'x' limit :bound)),
    (select count(*) from (select 1 from job
        where stage in ('n','p','q','x','u') and stage = 'n' limit :bound)),
    (select count(*) from (select 1 from job where stage = 'u' limit :bound))
