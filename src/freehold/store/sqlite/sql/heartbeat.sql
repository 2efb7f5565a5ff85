-- properties: not_notified
insert into worker (owner, manager, host, pid, started_at, seen_at, expires_at, concurrency,
    running, waiting, finished, state, version, queues, tasks)
values (:owner, :manager, :host, :pid, clock(), clock(),
    clock() + cast(round(:heartbeat_seconds * 1000000) as integer), :concurrency,
    :running, :waiting, :finished, :state, :version, :queues, :tasks)
on conflict (owner) do update
set manager = excluded.manager, seen_at = excluded.seen_at, expires_at = excluded.expires_at,
    running = excluded.running, waiting = excluded.waiting, finished = excluded.finished,
    state = excluded.state
