-- Jobs without keys, of no lane, that differ only in their arguments.
insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
    timeout_seconds, queue, task, limit_key, tags, policy, args)
-- Ids are drawn in the caller's order, which is the order of claiming.
select nextval('{schema}.job_id'), now, due_at,
       case when :pending::boolean then {pending} when due_at > now then {scheduled} else {ready} end,
       :priority::smallint, :max_attempts::smallint, :timeout_seconds::real, :queue::text,
       :task::text, :limit_key::text, :tags::json, :policy::json, args::json
from json_array_elements_text(:calls::json) as args,
     (select t.now, coalesce(:run_at::timestamptz,
                             t.now + make_interval(secs => :delay_seconds)) as due_at
      from (select {schema}.clock() as now) t) timed
returning id
