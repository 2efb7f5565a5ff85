-- Whether a day must be created or dropped, or a row deleted. The partition of tomorrow is created days
-- before, unless no worker has applied retention for as long.
select to_regclass('{schema}.history_' || to_char((t.now at time zone 'UTC')::date + 1, 'YYYYMMDD')) is null
    or exists (
        select from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = '{schema}.history'::regclass and c.relname ~ '^history_[0-9]+$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= (t.cutoff at time zone 'UTC')::date)
    or exists (select from {schema}.history_rest where finished_at < t.cutoff)
    or exists (select from {schema}.event_rest where at < t.cutoff)
    or exists (select from {schema}.job_log_rest where at < t.cutoff)
    or exists (select from {schema}.idempotency where expires_at <= t.now)
    or exists (select from {schema}.retention_rule r
        where coalesce(r.scanned_to, date_trunc('day', t.cutoff at time zone 'UTC') at time zone 'UTC')
            + interval '24 hours' <= t.now - make_interval(secs => r.days * 86400))
    or exists (select from {schema}.schedule where undeclared_at < t.now - interval '7 days')
    or exists (select from {schema}.throttle where next_at <= t.now)
    or exists (select from {schema}.signal where expires_at <= t.now)
    -- The oldest step can belong to a job that is kept: look at some of them.
    or exists (select from (
            select s.job_id from {schema}.step s where s.at < t.cutoff order by s.at limit 100) old
        where (select j.id from {schema}.job j where j.id = old.job_id) is null
          and (select h.id from {schema}.history h where h.id = old.job_id limit 1) is null)
from (select c.now, c.now - make_interval(secs => :history_days::double precision * 86400) as cutoff
      from (select {schema}.clock() as now) c) t
