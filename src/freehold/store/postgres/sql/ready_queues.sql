-- The queues that have ready jobs and are not paused, by name, beyond :after. Queue by queue through the
-- index of the claim: the number of jobs does not matter.
with recursive ready_queue as (
    (select queue from {schema}.job where {is_ready} and queue > :after::text order by queue limit 1)
    union all
    select (select j.queue from {schema}.job j
            where {is_ready} and j.queue > q.queue order by j.queue limit 1)
    from ready_queue q where q.queue is not null
)
select r.queue from ready_queue r
where r.queue is not null and not exists (
    select from {schema}.queue p
    where p.name in (r.queue, '*') and p.paused_at is not null
      and coalesce(p.paused_until > {schema}.clock(), true))
limit :limit::integer
