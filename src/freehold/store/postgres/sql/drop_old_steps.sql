-- properties: takes_long
-- Scans the next steps that were written before a day, and deletes all steps of those jobs that are gone. A finished
-- job keeps its steps: it can be run again. Returns how many were scanned, and how many deleted.
with examined as materialized (
    select at, job_id from {schema}.step
    where (at, job_id) > (:at::timestamptz, :job_id::bigint) and at < :day::timestamptz
    order by at, job_id limit :window::integer
),
gone as materialized (
    select e.job_id from (select distinct job_id from examined) e
    -- In this order: the history is probed in each of its days.
    where case when (select j.id from {schema}.job j where j.id = e.job_id) is not null then false
               else (select h.id from {schema}.history h where h.id = e.job_id limit 1) is null end
),
deleted as (
    delete from {schema}.step where job_id = any (array(select job_id from gone)) returning 1
),
scanned as (
    -- After the last window the next search begins with the oldest step again.
    insert into {schema}.step_scan as s (scanned_to, at, job_id)
    select case when e.at is null then :day::timestamptz else :scanned_to::timestamptz end,
        coalesce(e.at, '0001-01-02 UTC'), coalesce(e.job_id, 0)
    from (select) t left join (
        select at, job_id from examined order by at, job_id offset :window::integer - 1 limit 1) e on true
    on conflict (only_row) do update
    set scanned_to = excluded.scanned_to, at = excluded.at, job_id = excluded.job_id
)
select (select count(*) from examined), (select count(*) from deleted)
