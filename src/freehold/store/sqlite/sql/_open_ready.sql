select id from job
    where queue = :queue and stage in ({ready}, {lane_head}) and {queue_is_open}
    order by queue, -priority, id
