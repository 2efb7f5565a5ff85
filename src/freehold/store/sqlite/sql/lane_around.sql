-- The holder of a lane, and the jobs that wait before and after an id.
select id from (
    select * from (select id from job where target = :target and stage in ({in_lane}) and id < :around
        order by target desc, id desc limit :limit)
    union all
    select * from (select id from job where target = :target and stage in ({in_lane}) and id >= :around
        order by target, id limit :limit)
    union all
    select id from job where target = :target and stage in ({holds_lane}))
order by id
