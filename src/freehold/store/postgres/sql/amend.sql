-- Another priority, queue, time or number of attempts of waiting jobs, as they were read. The stage follows the time.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        id bigint, seen_stage "char", state text, stage_due "char", stage_later "char")
),
locked as materialized (
    select j.id, g.state, g.stage_due, g.stage_later from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given)) and j.stage = g.seen_stage
      and (:max_attempts::smallint is null or j.attempt < :max_attempts::smallint)
    order by j.id for update of j
),
changed as (
    update {schema}.job j
    set priority = coalesce(:priority::smallint, j.priority), queue = coalesce(:queue::text, j.queue),
        run_at = coalesce(:run_at::timestamptz, j.run_at),
        max_attempts = coalesce(:max_attempts::smallint, j.max_attempts),
        stage = case when :run_at::timestamptz is null then j.stage
            when :run_at::timestamptz > t.now then l.stage_later else l.stage_due end,
        parked_until = case when :run_at::timestamptz > t.now then null else j.parked_until end
    from locked l, (select {schema}.clock() as now) t
    where j.id = any (array(select id from locked)) and l.id = j.id
    returning j.id, j.attempt, l.state, t.now
),
recorded as (
    insert into {schema}.event (job_id, at, due_at, attempt, kind, state, by, reason)
    select id, now, :run_at::timestamptz, attempt, 'amended', state, :by::text, :reason::text
    from changed order by id
)
select id, true from changed
