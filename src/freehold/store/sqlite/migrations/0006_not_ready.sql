-- Jobs that are neither ready nor leased, by queue: delayed, backing off, behind others of their lane,
-- limited, parked, paused, failed or pending. A plain job is never in this index.
create index job_not_ready on job (queue) where stage not in ({ready}, {lane_head}, {leased});
