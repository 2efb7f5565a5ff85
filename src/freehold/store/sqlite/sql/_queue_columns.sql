-- A queue by its name `n.name`: counts up to a bound, its pause, weight and limit.
n.name,
    (select count(*) from (select 1 from job j
        where j.queue = n.name and j.stage in ({ready}, {lane_head}) limit :bound)),
    (select count(*) from (select 1 from job j where j.queue = n.name and j.stage = {leased}
        limit :bound)),
    (select count(*) from (select 1 from job j
        where j.queue = n.name and j.stage not in ({ready}, {lane_head}, {leased}) limit :bound)),
    -- Ready since its run_at: before that, a scheduled job was not ready.
    (select max(j.created_at, coalesce(j.run_at, j.created_at)) from job j where j.queue = n.name and j.stage in ({ready}, {lane_head})
     order by j.queue, -j.priority, j.id limit 1),
    p.paused_at, p.paused_by, p.pause_reason, p.paused_until,
    coalesce(s.weight, 1), s.max_leases, s.rate_starts, s.rate_seconds
