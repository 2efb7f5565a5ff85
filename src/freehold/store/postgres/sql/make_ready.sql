-- Due jobs enter the ready set; a job in backoff still holds its lane.
with due as (
    update {schema}.job
    set stage = case when stage = {backoff} then {lane_head} else {ready} end
    where id = any (array(
        select id from {schema}.job
        where stage in ({scheduled}, {backoff}) and run_at <= (select {schema}.clock())
        order by run_at
        limit :limit::integer
        for update skip locked))
    returning id, queue
),
notified as materialized (
    -- The sweeping worker may have no free slot: notify the others.
    select pg_notify('freehold_{schema}', '+' || queue)
    from (select distinct queue from due) q
)
select id from due where (select count(*) from notified) > 0
