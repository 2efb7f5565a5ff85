-- After `resume_lane`, whose lock on the pause nobody who stopped a job had left unseen.
with woken as (
    update {schema}.job set stage = 'R'
    where target = :target::text and stage in ({holds_lane}) and stage = 't'
    returning queue
)
select pg_notify('freehold_{schema}', '+' || queue) from woken
