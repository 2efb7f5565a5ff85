exists (select 1 from job h
    where h.target = k.target and h.stage in ({holds_lane}))
