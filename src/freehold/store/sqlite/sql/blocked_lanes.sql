-- Holders that wait for a person, among the newest jobs that do.
select target, id, stage, reason from (
    select id, target, stage, reason from job
    where stage in ({pending}, {paused}, {paused_follower}, {failed})
    order by id desc limit :window)
where target is not null and stage in ({paused}, {failed})
order by id limit :limit
