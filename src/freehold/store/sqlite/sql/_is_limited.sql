exists (select 1 from queue q where q.name in (:queue, '*')
        and (q.max_leases is not null or q.rate_starts is not null))
