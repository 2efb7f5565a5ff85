-- Each number up to a bound; of open flows those among the newest, which are found by their ids.
select
    (select count(*) from (select f.kind, f.closed_at from {schema}.flow f order by f.id desc limit :bound::integer) newest
     where newest.closed_at is null and newest.kind <> 'group'),
    (select count(*) from (select 1 from {schema}.flow f where f.due order by f.due, f.id limit :bound::integer) due),
    (select count(*) from (select 1 from {schema}.flow_end e order by e.flow limit :bound::integer) ends)
