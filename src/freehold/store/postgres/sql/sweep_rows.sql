-- The jobs that a sweep works on, without a lock: expired leases, due jobs, those that wait for a limit,
-- a lane or a worker that knows them, and those that are too late to start.
(select id, stage::text, target, lease_token, lease_owner, stop_request from {schema}.job
 where stage = {leased} and lease_expires_at <= (select {schema}.clock())
 order by lease_expires_at limit :limit::integer offset :offset::integer)
union all
(select id, stage::text, target, null, null, null from {schema}.job
 where stage in ({scheduled}, {backoff}) and run_at <= (select {schema}.clock())
 order by run_at limit :limit::integer offset :offset::integer)
union all
(select id, stage::text, target, null, null, null from {schema}.job
 where stage in ({limited}, {parked}, {lane_paused}) order by id limit :limit::integer offset :offset::integer)
union all
(select id, stage::text, target, null, null, null from {schema}.job
 where start_by is not null and attempt = 0 and start_by <= (select {schema}.clock())
 order by start_by limit :limit::integer offset :offset::integer)
