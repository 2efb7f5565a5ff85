-- Word for word the predicate of the index job_claim, or the planner will not use it.
coalesce(stage in ({ready}, {lane_head}), false)
