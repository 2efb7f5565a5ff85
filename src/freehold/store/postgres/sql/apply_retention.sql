-- properties: takes_long
-- Deletes expired rows of the default partitions, expired idempotency keys and
-- undeclared schedules, row by row.
with stray_history as (
    delete from {schema}.history_rest where ctid = any (array(
        select ctid from {schema}.history_rest
        where finished_at < {schema}.clock() - make_interval(secs => :history_days::double precision * 86400)
        limit :limit::integer))
    returning 1
),
stray_events as (
    delete from {schema}.event_rest where ctid = any (array(
        select ctid from {schema}.event_rest
        where at < {schema}.clock() - make_interval(secs => :history_days::double precision * 86400)
        limit :limit::integer))
    returning 1
),
stray_notes as (
    delete from {schema}.job_log_rest where ctid = any (array(
        select ctid from {schema}.job_log_rest
        where at < {schema}.clock() - make_interval(secs => :history_days::double precision * 86400)
        limit :limit::integer))
    returning 1
),
old_keys as (
    delete from {schema}.idempotency where key = any (array(
        select i.key from {schema}.idempotency i
        where i.expires_at <= (select {schema}.clock())
          and (select j.id from {schema}.job j where j.id = i.job_id) is null
        order by i.expires_at limit :limit::integer
        for update skip locked))
    returning 1
),
undeclared as (
    -- Schedules that their app has not declared for a week.
    delete from {schema}.schedule where name = any (array(
        select s.name from {schema}.schedule s
        where s.undeclared_at < (select {schema}.clock()) - interval '7 days'
        order by s.undeclared_at limit :limit::integer
        for update skip locked))
    returning 1
),
old_signals as (
    delete from {schema}.signal where name = any (array(
        select name from {schema}.signal where expires_at <= (select {schema}.clock())
        order by expires_at limit :limit::integer
        for update skip locked))
    returning 1
),
old_notifications as (
    -- Names of queues may be many and short-lived.
    delete from {schema}.last_notified where topic = any (array(
        select topic from {schema}.last_notified where at < (select {schema}.clock()) - interval '1 day'
        limit :limit::integer
        for update skip locked))
    returning 1
),
old_throttles as (
    delete from {schema}.throttle where key = any (array(
        select key from {schema}.throttle where next_at <= (select {schema}.clock())
        order by next_at limit :limit::integer
        for update skip locked))
    returning 1
)
select (select count(*) from stray_history)::integer
     + (select count(*) from stray_events)::integer + (select count(*) from stray_notes)::integer
     + (select count(*) from old_keys)::integer + (select count(*) from undeclared)::integer
     + (select count(*) from old_throttles)::integer + (select count(*) from old_signals)::integer
     + (select count(*) from old_notifications)::integer
