-- Ready jobs of a queue in the order of the claim.
select id, stage, target, null, null, null from job
where queue = :queue and stage in ({ready}, {lane_head})
order by queue, -priority, id
limit :limit offset :offset
