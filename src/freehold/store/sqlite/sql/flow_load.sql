-- Each number up to a bound; of open flows those among the newest, which are found by their ids.
select
    (select count(*) from (select kind, closed_at from flow order by id desc limit :bound) newest
     where newest.closed_at is null and newest.kind <> 'group'),
    (select count(*) from (select 1 from flow where due limit :bound) due),
    (select count(*) from (select 1 from flow_end limit :bound) ends)
