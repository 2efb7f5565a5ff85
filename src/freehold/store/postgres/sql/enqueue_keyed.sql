-- properties: can_conflict
-- Jobs with keys, or with a time to start by. A unique key that a live job holds, or an idempotency key that is
-- remembered, keeps its job out; `find_holders` reads the holder afterwards.
with given as (
    select nextval('{schema}.job_id') as id, g.*, t.now
    from json_to_recordset(:rows::json) as g(
        position integer, task text, queue text, priority smallint, args text,
        max_attempts smallint, pending boolean, run_at timestamptz, delay_seconds double precision,
        target text, limit_key text, unique_key text, timeout_seconds real, tags text, policy text,
        meta text, idempotency_key text, idempotency_seconds double precision, start_by timestamptz,
        start_by_seconds double precision),
        (select {schema}.clock() as now) t
),
remembered as materialized (
    -- A key is remembered beyond its time while its job is live.
    select i.key from {schema}.idempotency i
    where i.key = any (array(select idempotency_key from given))
      and (i.expires_at > (select {schema}.clock())
           or exists (select from {schema}.job j where j.id = i.job_id))
),
inserted as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, args, meta, start_by)
    select id, now, due_at,
           case when pending then {pending} when due_at > now then {scheduled} else {ready} end,
           priority, max_attempts, timeout_seconds, queue, task, target, limit_key, unique_key,
           tags::json, policy::json, args::json, meta::json,
           coalesce(start_by, greatest(due_at, now) + make_interval(secs => start_by_seconds))
    from (select given.*, coalesce(run_at, now + make_interval(secs => delay_seconds)) as due_at
          from given) g
    where g.idempotency_key is null
       or g.idempotency_key not in (select key from remembered)
    -- One order for all writers of keys, so that they never deadlock.
    order by unique_key, id
    on conflict (unique_key) where unique_key is not null and stage <> {failed} do nothing
    returning id
),
expired as materialized (
    -- Locked in the order in which they are inserted below, for the same reason.
    select i.key from {schema}.idempotency i
    where i.key = any (array(select g.idempotency_key from given g join inserted using (id)))
    order by i.key for update
),
deleted as (
    delete from {schema}.idempotency i where i.key = any (array(select key from expired))
    returning i.key
),
kept as (
    -- Without ON CONFLICT: two callers with one key at once must not both get "created".
    insert into {schema}.idempotency (key, job_id, expires_at)
    select idempotency_key, id, now + make_interval(secs => idempotency_seconds)
    from given join inserted using (id)
    where idempotency_key is not null
      -- Reads all of `deleted` first: an expired key must be deleted before it is inserted again.
      and (select count(*) from deleted) >= 0
    order by idempotency_key
)
select position, id, now from given join inserted using (id)
