select count(*) from (
    select 1 from job where queue = :queue and stage in ('r','R') limit :bound)
