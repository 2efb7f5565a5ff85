-- Jobs whose time has come enter the ready set; one in backoff still holds its lane.
with due as (
    update {schema}.job
    set stage = case when stage = 'b' then 'R' else 'r' end
    where id = any (array(
        select id from {schema}.job
        where stage in ('w','b') and run_at <= (select {schema}.clock())
        order by run_at
        limit :limit::integer
        for update skip locked))
    returning id, queue
),
told as materialized (
    -- Whoever sweeps may have no slot free: others should hear of it.
    select pg_notify('freehold_{schema}', '+' || queue)
    from (select distinct queue from due) q
)
select id from due where (select count(*) from told) > 0
