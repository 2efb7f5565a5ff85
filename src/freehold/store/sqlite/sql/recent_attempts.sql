-- Attempts within a time: of leased jobs, of jobs that succeeded, and those that an event ended. The newest
-- rows are examined. Every row begins with the creation time of the oldest finished job that was examined.
with finished as materialized (
    select id, task, queue, finished_by, attempt, token, created_at, leased_at, started_at, finished_at, state
    from history order by id desc limit :window
),
ended as materialized (
    select id, job_id, by, attempt, token, leased_at, started_at, at, kind
    from event order by id desc limit :window
),
span as (
    select id as job_id, task, queue, lease_owner as worker, attempt, lease_token as token, leased_at,
        started_at, null as ended_at, 'running' as outcome
    from job where stage = {leased} and leased_at <= :until
    union all
    select id, task, queue, finished_by, attempt, token, leased_at, started_at, finished_at, state
    from finished
    where state = 'succeeded' and leased_at <= :until and finished_at >= :since
        and finished_by is not null and token is not null
    union all
    select job_id, null, null, by, attempt, token, leased_at, started_at, at, kind
    from ended
    where token is not null and by is not null and leased_at <= :until and at >= :since
)
select n.floor, s.* from (
    select case when count(*) >= :window then min(created_at) end as floor from finished) n
left join (select * from span order by leased_at desc, job_id desc limit :limit) s on true
