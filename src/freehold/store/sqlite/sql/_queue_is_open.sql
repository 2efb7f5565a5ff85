not exists (select 1 from queue q where q.name in (:queue, '*') and q.paused_at is not null
        and coalesce(q.paused_until > clock(), 1))
