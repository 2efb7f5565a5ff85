-- properties: adds_rows
-- One job without keys: its values as they are, because reading them from JSON takes longer.
insert into {schema}.job (id, created_at, run_at, stage, priority, max_attempts,
    timeout_seconds, queue, task, target, limit_key, tags, policy, args, meta)
select nextval('{schema}.job_id'), now, due_at,
       case when :pending::boolean then {pending} when due_at > now then {scheduled} else {ready} end,
       :priority::smallint, :max_attempts::smallint, :timeout_seconds::real, :queue::text,
       :task::text, :target::text, :limit_key::text, :tags::json, :policy::json, :args::json,
       :meta::json
from (select t.now, coalesce(:run_at::timestamptz,
                             t.now + make_interval(secs => :delay_seconds)) as due_at
      from (select {schema}.clock() as now) t) timed
returning id, created_at, {notify_age}
