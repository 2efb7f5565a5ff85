-- Each number up to a bound.
select
    (select count(*) from (select 1 from flow where closed_at is null and kind <> 'group' limit :bound) open),
    (select count(*) from (select 1 from flow where due limit :bound) due),
    (select count(*) from (select 1 from flow_end limit :bound) ends)
