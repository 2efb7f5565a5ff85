update job
set stage = case when stage = {backoff} then {lane_head} else {ready} end
where id in (select id from job where stage in ({scheduled}, {backoff}) and run_at <= clock()
             order by run_at limit :limit)
returning id
