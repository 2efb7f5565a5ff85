-- The holder of a lane, and the jobs that wait before and after an id.
select id from (
    (select id from {schema}.job where target = :target::text and stage in ({in_lane}) and id < :around::bigint
     order by target desc, id desc limit :limit::integer)
    union all
    (select id from {schema}.job where target = :target::text and stage in ({in_lane}) and id >= :around::bigint
     order by target, id limit :limit::integer)
    union all
    (select id from {schema}.job where target = :target::text and stage in ({holds_lane}))) lane
order by id
