-- Every other change of a live job, from what was read to what was decided. It is guarded by what was
-- read: the stage, and for a leased row its owner, token, expiry and stop request; and for a job that is
-- canceled as late, that it is late still.
given as (
    select * from json_to_recordset(:rows::json) as g(
        id bigint, seen_stage "char", token bigint, owner text, expired boolean, stop_request text,
        leaves boolean, state text, stage_due "char", stage_later "char",
        delay_seconds double precision, keep_run_at boolean, fresh_attempts boolean,
        refund smallint, lost_attempts smallint, reason text, obeys boolean, error text, result text,
        ran_seconds double precision, event text, waits_for text,
        keep_start_by boolean, late boolean)
),
locked as materialized (
    select j.* from {schema}.job j
    where j.id = any (array(select id from given))
    order by j.id for update
),
compared as materialized (
    select l.*, g.token as seen_token, t.now, g.leaves, g.state, g.stage_due, g.stage_later,
        g.fresh_attempts, g.event, g.result, g.error, g.keep_start_by,
        case when not g.obeys then g.reason
             -- Interrupted: author and reason.
             when g.state = 'paused' and l.stop_request = 'cancel'
             then concat(g.reason, ' by ' || l.stop_requested_by, ': ' || l.stop_request_reason)
             else coalesce(l.stop_request_reason, g.reason) end as new_reason, g.refund,
        g.lost_attempts as more_lost, g.ran_seconds,
        l.stage = g.seen_stage and (l.stage <> {leased} or (
            l.lease_token = g.token and l.lease_owner = g.owner
            and (l.lease_expires_at <= {schema}.clock()) = g.expired))
            and (not g.late or (l.start_by is not null and l.attempt = 0 and l.start_by <= t.now)) as unchanged,
        l.stop_request is not distinct from g.stop_request as request_unchanged,
        g.delay_seconds, g.keep_run_at, g.waits_for as new_waits_for,
        case when g.keep_run_at then l.run_at
             -- Sent meanwhile: the job runs again at once.
             when starts_with(g.waits_for, 'signal/') and exists (select from {schema}.signal s
                 where s.name = substr(g.waits_for, 8) and s.expires_at > t.now) then null
             -- All that it gathers has ended meanwhile.
             when starts_with(g.waits_for, 'gather/') and exists (select from {schema}.flow f
                 where f.id = substr(g.waits_for, 8)::bigint and f.closed_at is not null) then null
             when g.delay_seconds > 0 then t.now + make_interval(secs => g.delay_seconds) end
            as new_run_at
    -- The time is read when all rows are locked: a member that the job has added meanwhile is not younger than its end.
    from locked l join given g using (id), (select {schema}.clock() as now from (select count(*) from locked) waited) t
),
fit as materialized (select * from compared where unchanged and request_unchanged),
gone as (
    delete from {schema}.job where id = any (array(select id from fit where leaves))
),
kept as (
    insert into {schema}.history (id, created_at, run_at, leased_at, started_at, finished_at,
        token, timeout_seconds, priority, attempt, max_attempts, lost_attempts, state, queue, task, finished_by,
        target, limit_key, unique_key, tags, policy, reason, error, result, progress, args, meta)
    select id, created_at, run_at, leased_at,
        coalesce(started_at, now - make_interval(secs => ran_seconds)), now,
        lease_token, timeout_seconds, priority, attempt - refund, max_attempts, lost_attempts + more_lost,
        state, queue, task, coalesce(:by::text, lease_owner), target, limit_key, unique_key, tags,
        policy, new_reason, error::json, result::json, progress, args, meta
    from fit where leaves
),
back as (
    update {schema}.job j
    set stage = case when f.new_run_at > f.now then f.stage_later else f.stage_due end,
        run_at = f.new_run_at,
        attempt = case when f.fresh_attempts then 0 else j.attempt - f.refund end,
        lost_attempts = case when f.fresh_attempts then 0 else j.lost_attempts + f.more_lost end,
        lease_owner = null, lease_token = null, lease_expires_at = null, leased_at = null,
        heartbeat_at = null, started_at = null,
        stop_request = null, stop_requested_by = null, stop_request_reason = null,
        reason = f.new_reason,
        -- A job that a worker took must not meet a newer one with its key.
        waiting_key = case when f.stage <> {leased} then j.waiting_key end,
        waits_for = case when f.keep_run_at then j.waits_for else f.new_waits_for end,
        start_by = case when f.keep_start_by then j.start_by end,
        parked_until = case when f.stage_due = {parked}
            then coalesce(j.parked_until, f.now + make_interval(secs => f.delay_seconds)) end
    from fit f
    where j.id = any (array(select id from fit where not leaves)) and j.id = f.id
),
recorded as (
    insert into {schema}.event (job_id, at, leased_at, started_at, due_at, token, attempt, kind,
        state, by, reason, error)
    select id, now, leased_at, coalesce(started_at, now - make_interval(secs => ran_seconds)),
        case when state = 'queued' then new_run_at end, lease_token, attempt, event, state,
        coalesce(:by::text, lease_owner), new_reason, error::json
    from fit
)
