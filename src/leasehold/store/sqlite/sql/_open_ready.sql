select id from job
    where queue = :queue and stage in ('r','R')
      and not exists (select 1 from queue q where q.name = :queue and q.paused_at is not null
                      and coalesce(q.paused_until > clock(), 1))
    order by queue, -priority, id
