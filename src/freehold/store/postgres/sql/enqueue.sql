-- properties: adds_rows
-- Jobs without keys: no other transaction can make this one wait. Jobs with the same shape differ only
-- in their arguments. A call has few shapes, so that each is sent once, and for each job its number.
with timed as (
    select s.*, t.now, coalesce(s.run_at, t.now + make_interval(secs => s.delay_seconds)) as due_at
    from json_to_recordset(:rows::json) as s(
        number integer, task text, queue text, priority smallint, max_attempts smallint,
        pending boolean, run_at timestamptz, delay_seconds double precision, target text,
        limit_key text, timeout_seconds real, tags text, policy text, meta text, follows boolean),
        (select {schema}.clock() as now) t
),
shape as materialized (
    select timed.*, case when pending then {pending} when due_at > now then {scheduled}
                         when follows then {follower} else {ready} end as stage
    from timed
)
insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
    timeout_seconds, queue, task, target, limit_key, tags, policy, args, meta)
select id, now, due_at, stage, priority, max_attempts, timeout_seconds, queue, task, target, limit_key,
       tags::json, policy::json, args, meta::json
from (
    -- Ids are drawn in the caller's order, which is the order of claiming.
    select nextval('{schema}.job_id') as id, c.args, c.number
    from rows from (json_array_elements(:calls::json), unnest(:numbers::integer[])) as c(args, number)
) call
-- Arguments that are more than one value leave a call without a number: it has no task, and is refused.
left join shape using (number)
-- All have one time of creation. It is sent with one of them, because sending and parsing it with each
-- slows a bulk enqueue down: with the job of the latest id when the first row is returned. A row of its own
-- would need a common table around the insert, which takes the server a twentieth of its time.
returning id, case when id = (select currval('{schema}.job_id')) then created_at end
