-- properties: takes_long
-- Scans the next jobs of one day, and deletes those of the rule with their events, log lines and steps.
-- Returns how many were scanned, and how many deleted.
with examined as materialized (
    -- The conditions on 1900 are never true: they keep the planner from taking the day for a narrow range.
    select id, queue, task from {schema}.history
    where (finished_at >= :day::timestamptz or finished_at < '1900-01-01 UTC')
      and (finished_at < :next_day::timestamptz or finished_at < '1900-01-01 UTC') and id > :after::bigint
    order by id limit :window::integer
),
gone as (
    delete from {schema}.history
    where finished_at >= :day::timestamptz and finished_at < :next_day::timestamptz and id = any (array(
        select id from examined where case :kind::text when 'queue' then queue else task end = :name::text))
    returning id
),
events as (
    delete from {schema}.event where job_id = any (array(select id from gone))
),
lines as (
    delete from {schema}.job_log where job_id = any (array(select id from gone))
),
steps as (
    delete from {schema}.step where job_id = any (array(select id from gone))
),
scanned as (
    update {schema}.retention_rule r
    set scanned_to = case when e.is_last then :next_day::timestamptz else :day::timestamptz end,
        scanned_id = case when e.is_last then 0 else e.last_id end
    from (select count(*) < :window::integer as is_last, max(id) as last_id from examined) e
    where r.kind = :kind::text and r.name = :name::text
)
select (select count(*) from examined), (select count(*) from gone)
