-- Word for word the predicate of the index job_not_ready, or the planner will not use it.
coalesce(stage not in ({ready}, {lane_head}, {leased}), false)
