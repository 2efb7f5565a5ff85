-- Ready jobs that would be claimed before this one, up to a bound.
select count(*) from (
    select 1 from job
    where queue = :queue and stage in ({ready}, {lane_head}) and (-priority, id) < (-:priority, :id)
    limit :bound)
