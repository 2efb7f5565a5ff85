update job
set stage = case when stage = {paused_follower} then {paused} else {lane_head} end
where id = (select l.id from job l where l.target = :target and l.stage in ({in_lane})
            order by l.target, l.id limit 1)
  and not exists (select 1 from job h
                  where h.target = :target and h.stage in ({holds_lane}))
