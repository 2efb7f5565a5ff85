-- Each number up to a bound.
select
    (select count(*) from (select 1 from {schema}.flow f where f.closed_at is null and f.kind <> 'group'
                           order by f.closed_at, f.id limit :bound::integer) open),
    (select count(*) from (select 1 from {schema}.flow f where f.due order by f.due, f.id limit :bound::integer) due),
    (select count(*) from (select 1 from {schema}.flow_end e order by e.flow limit :bound::integer) ends)
