with named as (
    select * from (select distinct target from job
        where target is not null and stage in ({in_lane}) and target > :after
        order by target limit :limit)
    union
    select * from (select target from job
        where target is not null and stage in ({holds_lane}) and target > :after
        order by target limit :limit)
    union
    select * from (select target from lane
        where target > :after and coalesce(paused_until > clock(), 1)
        order by target limit :limit)
)
select {lane_columns}
from (select target from named order by target limit :limit) n
{lane_joins}
order by n.target
