-- Jobs with keys. A unique key that a live job holds, or an idempotency key that is
-- remembered, keeps its job out; who holds it is looked up afterwards.
with given as (
    select nextval('{schema}.job_id') as id, g.*, t.now
    from json_to_recordset(:rows::json) as g(
        place integer, task text, queue text, priority smallint, args text,
        max_attempts smallint, pending boolean, run_at timestamptz, delay_seconds double precision,
        target text, limit_key text, unique_key text, timeout_seconds real, tags text, policy text,
        idempotency_key text, idempotency_seconds double precision),
        (select {schema}.clock() as now) t
),
remembered as materialized (
    -- A key outlives its time while its job is live.
    select i.key from {schema}.idempotency i
    where i.key = any (array(select idempotency_key from given))
      and (i.expires_at > (select {schema}.clock())
           or exists (select from {schema}.job j where j.id = i.job_id))
),
born as (
    insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
        timeout_seconds, queue, task, target, limit_key, unique_key, tags, policy, args)
    select id, now, due_at,
           case when pending then 'n' when due_at > now then 'w' else 'r' end,
           priority, max_attempts, timeout_seconds, queue, task, target, limit_key, unique_key,
           tags::json, policy::json, args::json
    from (select given.*, coalesce(run_at, now + make_interval(secs => delay_seconds)) as due_at
          from given) g
    where g.idempotency_key is null
       or g.idempotency_key not in (select key from remembered)
    -- One order for all writers of keys, so that they wait in a line and never in a circle.
    order by unique_key, id
    on conflict (unique_key) where unique_key is not null and stage <> 'x' do nothing
    returning id
),
forgotten as (
    delete from {schema}.idempotency i
    where i.key = any (array(select g.idempotency_key from given g join born using (id)))
    returning i.key
),
kept as (
    -- Without ON CONFLICT: two callers with one key at once must not both be told "created".
    insert into {schema}.idempotency (key, job_id, expires_at)
    select idempotency_key, id, now + make_interval(secs => idempotency_seconds)
    from given join born using (id)
    where idempotency_key is not null
      -- Reads all of `forgotten` first: a key whose time is over must go before it can return.
      and (select count(*) from forgotten) >= 0
    order by idempotency_key
)
select place, id from given join born using (id)
