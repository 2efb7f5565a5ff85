-- The job of a callback is stored once: the same statement marks the callback.
with due as materialized (
    select c.flow, c.moment from {schema}.flow_callback c
    where c.flow = :flow::bigint and c.moment = :moment::text and c.job_id is null
    for update
),
stored as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts, timeout_seconds, queue, task,
        target, limit_key, tags, policy, args, meta, start_by)
    select nextval('{schema}.job_id'), now, due_at, case when due_at > now then {scheduled} else {ready} end,
        :priority::smallint, :max_attempts::smallint, :timeout_seconds::real, :queue::text, :task::text, :target::text,
        :limit_key::text, :tags::json, :policy::json, :args::json, :meta::json,
        greatest(due_at, now) + make_interval(secs => :start_by_seconds::double precision)
    from due, (select t.now, coalesce(:run_at::timestamptz, t.now + make_interval(secs => :delay_seconds)) as due_at
               from (select {schema}.clock() as now) t) timed
    returning id
),
marked as (
    update {schema}.flow_callback c set job_id = s.id from stored s
    where c.flow = :flow::bigint and c.moment = :moment::text
),
notified as materialized (
    select pg_notify('freehold_{schema}', '+' || :queue::text) from stored
)
select id from stored where (select count(*) from notified) > 0
