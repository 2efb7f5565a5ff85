-- Lanes in which somebody waits, from where the last look ended; and whether nobody holds them and
-- their first cannot begin by itself.
with recursive walked as (
    (select j.target, 1 as place from {schema}.job j
     where j.target > :after::text and j.stage in ({in_lane})
     order by j.target, j.id limit 1)
    union all
    select (select j.target from {schema}.job j
            where j.target > w.target and j.stage in ({in_lane})
            order by j.target, j.id limit 1), w.place + 1
    from walked w where w.target is not null and w.place < :limit::integer
)
select w.target,
       (select j.stage from {schema}.job j
        where j.target = w.target and j.stage in ({in_lane})
        order by j.target, j.id limit 1) in ('f','q')
       and (select h.id from {schema}.job h
            where h.target = w.target and h.stage in ({holds_lane}) limit 1) is null as adrift
from walked w where w.target is not null
order by w.place
