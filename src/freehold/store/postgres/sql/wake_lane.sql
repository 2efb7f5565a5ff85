-- Runs after `resume_lane`, whose lock on the pause waits for every claim that marked a job of this lane.
with woken as (
    update {schema}.job set stage = {lane_head}
    where target = :target::text and stage in ({holds_lane}) and stage = {lane_paused}
    returning queue
)
select pg_notify('freehold_{schema}', '+' || queue) from woken
