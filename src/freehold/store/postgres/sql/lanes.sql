-- Lane by lane through the indexes: the number of jobs does not matter.
with recursive waiting as (
    (select target from {schema}.job
     where target is not null and stage in ({in_lane}) and target > :after::text
     order by target limit 1)
    union all
    select (select j.target from {schema}.job j
            where j.target is not null and j.stage in ({in_lane}) and j.target > w.target
            order by j.target limit 1)
    from waiting w where w.target is not null
),
held as (
    (select target from {schema}.job
     where target is not null and stage in ({holds_lane}) and target > :after::text
     order by target limit 1)
    union all
    select (select j.target from {schema}.job j
            where j.target is not null and j.stage in ({holds_lane}) and j.target > w.target
            order by j.target limit 1)
    from held w where w.target is not null
),
named as (
    (select target from waiting where target is not null limit :limit::integer)
    union
    (select target from held where target is not null limit :limit::integer)
    union
    (select target from {schema}.lane
     where target > :after::text and coalesce(paused_until > {schema}.clock(), true)
     order by target limit :limit::integer)
)
select {lane_columns}
from (select target from named order by target limit :limit::integer) n
{lane_joins}
order by n.target
