update job
set stage = case when stage = 'b' then 'R' else 'r' end
where id in (select id from job where stage in ('w','b') and run_at <= clock()
             order by run_at limit :limit)
returning id
