select id from job
    where queue = :queue and stage in ('r','R') and {door_open}
    order by queue, -priority, id
