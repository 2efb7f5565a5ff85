-- properties: takes_long
-- Both scans have a lower and an upper bound of `at`. With one bound, or by `id` alone, a plan that PostgreSQL 14 to 16
-- made when the table was empty reads all of it, twice.
with old as materialized (
    select id, at from {schema}.audit
    where at > '-infinity' and at < (select {schema}.clock() - make_interval(secs => :audit_days::double precision * 86400))
    order by at limit :limit::integer
)
delete from {schema}.audit
where at >= (select min(at) from old) and at <= (select max(at) from old)
  and id = any (array(select id from old))
returning 1
