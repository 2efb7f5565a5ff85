-- A worker's heartbeat. Columns that cannot change while it runs are written once.
insert into {schema}.worker as w (owner, manager, host, pid, started_at, seen_at, expires_at,
    concurrency, running, waiting, finished, state, version, queues, tasks)
select :owner::text, :manager::text, :host::text, :pid::integer, t.now, t.now,
    t.now + make_interval(secs => :heartbeat_seconds::double precision), :concurrency::integer,
    :running::integer, :waiting::integer, :finished::bigint, :state::text, :version::text,
    :queues::json, :tasks::json
from (select {schema}.clock() as now) t
on conflict (owner) do update
set manager = excluded.manager, seen_at = excluded.seen_at, expires_at = excluded.expires_at,
    running = excluded.running, waiting = excluded.waiting, finished = excluded.finished,
    state = excluded.state
