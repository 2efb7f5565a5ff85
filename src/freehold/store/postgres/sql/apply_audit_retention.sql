-- properties: takes_long
delete from {schema}.audit where id = any (array(
    select id from {schema}.audit
    where at < (select {schema}.clock() - make_interval(secs => :audit_days::double precision * 86400))
    order by at limit :limit::integer))
returning 1
