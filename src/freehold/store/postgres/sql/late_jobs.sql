-- Jobs that have not started by their time, without a lock: the longest over first.
select id from {schema}.job
where start_by is not null and attempt = 0 and start_by <= (select {schema}.clock())
order by start_by, id
limit :limit::integer
