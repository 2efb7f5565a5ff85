-- The queues that have ready jobs and are not paused, by name, beyond :after. Queue by queue through the
-- index of the claim: the number of jobs does not matter.
with recursive ready_queue as (
    select min(queue) as queue from job where stage in ({ready}, {lane_head}) and queue > :after
    union all
    select (select min(j.queue) from job j where j.stage in ({ready}, {lane_head}) and j.queue > q.queue)
    from ready_queue q where q.queue is not null
)
select r.queue from ready_queue r
where r.queue is not null and not exists (
    select 1 from queue p
    where p.name in (r.queue, '*') and p.paused_at is not null
      and coalesce(p.paused_until > clock(), 1))
limit :limit
