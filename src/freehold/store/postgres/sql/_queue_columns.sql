-- A queue by its name `n.name`: counts up to a bound, its pause, weight and limit.
n.name,
    {schema}.count_ready(n.name, :bound::integer),
    (select count(*) from (select from {schema}.job j
        where j.queue = n.name and j.stage = {leased} limit :bound::integer) x),
    {schema}.count_not_ready(n.name, :bound::integer),
    -- Ready since its run_at: before that, a scheduled job was not ready.
    (select greatest(j.created_at, j.run_at) from {schema}.job j
     where j.queue = n.name and {is_ready} order by j.queue, (-j.priority), j.id limit 1),
    p.paused_at, p.paused_by, p.pause_reason, p.paused_until,
    coalesce(s.weight, 1), s.max_leases, s.rate_starts, s.rate_seconds
