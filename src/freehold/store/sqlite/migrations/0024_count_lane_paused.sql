-- Heads of paused lanes, which are counted for the dashboard every second. Without an index of their own each
-- count read the holders of all lanes.
create index job_lane_paused on job (target) where stage = {lane_paused};
