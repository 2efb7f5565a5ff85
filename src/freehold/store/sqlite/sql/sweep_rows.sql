-- The jobs that a sweep works on: expired leases, due jobs, those that wait for a limit, a lane or a
-- worker that knows them, and those that are too late to start.
select * from (
    select id, stage, target, lease_token, lease_owner, stop_request from job
    where stage = {leased} and lease_expires_at <= clock() order by lease_expires_at limit :limit offset :offset)
union all
select * from (
    select id, stage, target, null, null, null from job
    where stage in ({scheduled}, {backoff}) and run_at <= clock() order by run_at limit :limit offset :offset)
union all
select * from (
    select id, stage, target, null, null, null from job
    where stage in ({limited}, {parked}, {lane_paused}) order by id limit :limit offset :offset)
union all
select * from (
    select id, stage, target, null, null, null from job
    where {is_late} order by start_by limit :limit offset :offset)
