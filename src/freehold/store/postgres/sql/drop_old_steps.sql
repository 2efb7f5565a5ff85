-- properties: takes_long
-- Steps older than the history, of jobs that are gone. A finished job keeps its steps: it can be run again.
delete from {schema}.step where ctid = any (array(
    select s.ctid from {schema}.step s
    where s.at < (select {schema}.clock()) - make_interval(secs => :history_days::double precision * 86400)
      and (select j.id from {schema}.job j where j.id = s.job_id) is null
      and (select h.id from {schema}.history h where h.id = s.job_id limit 1) is null
    order by s.at limit :limit::integer
    for update skip locked))
returning 1
