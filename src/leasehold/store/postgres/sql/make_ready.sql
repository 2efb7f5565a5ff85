-- Jobs whose time has come enter the ready set; one in backoff still holds its lane.
update {schema}.job
set stage = case when stage = 'b' then 'R' else 'r' end
where id = any (array(
    select id from {schema}.job
    where stage in ('w','b') and run_at <= (select {schema}.clock())
    order by run_at
    limit :limit::integer
    for update skip locked))
returning id
