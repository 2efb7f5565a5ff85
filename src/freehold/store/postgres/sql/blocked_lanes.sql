-- Holders that wait for a person, among the newest jobs that do.
with examined as materialized (
    select id, target, stage, reason from {schema}.job
    where stage in ({pending}, {paused}, {paused_follower}, {failed})
    order by id desc limit :window::integer
)
select target, id, stage::text, reason from examined
where target is not null and stage in ({paused}, {failed})
order by id limit :limit::integer
