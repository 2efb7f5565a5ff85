update job set stage = {lane_head} where target = :target and stage = {lane_paused}
