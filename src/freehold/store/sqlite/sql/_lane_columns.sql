-- A lane by its target `n.target`: depth up to a bound, its head, and its pause.
n.target,
    (select count(*) from (select 1 from job j where j.target = n.target
        and j.stage in ({in_lane}) limit :bound)) + (h.id is not null) as depth,
    coalesce(h.id, f.id), coalesce(h.stage, f.stage), h.started_at, coalesce(h.reason, f.reason),
    coalesce(h.leased_at, h.run_at, f.run_at, h.created_at, f.created_at),
    p.paused_at, p.paused_by, p.pause_reason, p.paused_until
