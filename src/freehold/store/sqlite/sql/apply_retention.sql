delete from history where id in (
    select id from history where finished_at < clock() - cast(:history_days * 86400000000 as integer)
    order by finished_at limit :limit)
returning 1;

delete from event where id in (
    select id from event where at < clock() - cast(:history_days * 86400000000 as integer)
    order by at limit :limit)
returning 1;

delete from job_log where (job_id, token, number) in (
    select job_id, token, number from job_log
    where at < clock() - cast(:history_days * 86400000000 as integer)
    order by at limit :limit)
returning 1;

delete from idempotency where key in (
    select i.key from idempotency i where i.expires_at <= clock()
    and not exists (select 1 from job j where j.id = i.job_id)
    order by i.expires_at limit :limit)
returning 1;

delete from schedule where name in (
    select name from schedule where undeclared_at < clock() - 7 * 86400000000
    order by undeclared_at limit :limit)
returning 1;

delete from throttle where key in (
    select key from throttle where next_at <= clock() order by next_at limit :limit)
returning 1;

delete from signal where name in (
    select name from signal where expires_at <= clock() order by expires_at limit :limit)
returning 1
