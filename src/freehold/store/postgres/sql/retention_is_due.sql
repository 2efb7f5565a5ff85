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
    -- The oldest, by its index: a plan for any that is old enough could read the whole table.
    or (select expires_at from {schema}.idempotency order by expires_at limit 1) <= t.now
    or exists (select from {schema}.retention_rule r
        where coalesce(r.scanned_to, date_trunc('day', t.cutoff at time zone 'UTC') at time zone 'UTC')
            + interval '24 hours' <= t.now - make_interval(secs => r.days * 86400))
    or (select undeclared_at from {schema}.schedule where undeclared_at is not null
        order by undeclared_at limit 1) < t.now - interval '7 days'
    or (select next_at from {schema}.throttle order by next_at limit 1) <= t.now
    or (select expires_at from {schema}.signal order by expires_at limit 1) <= t.now
    or (select closed_at from {schema}.flow where closed_at is not null order by closed_at limit 1) < t.cutoff
    or (select at from {schema}.step order by at, job_id limit 1) < t.day
        and not exists (select from {schema}.step_scan where scanned_to >= t.day)
from (select d.now, d.cutoff, date_trunc('day', d.cutoff, 'UTC') as day
      from (select c.now, c.now - make_interval(secs => :history_days::double precision * 86400) as cutoff
            from (select {schema}.clock() as now) c) d) t
