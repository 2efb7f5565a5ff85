insert into {schema}.queue (name, paused_at, paused_by, pause_reason, paused_until)
values (:queue::text, {schema}.clock(), :by::text, :reason::text, :until::timestamptz)
on conflict (name) do update
set paused_at = excluded.paused_at, paused_by = excluded.paused_by,
    pause_reason = excluded.pause_reason, paused_until = excluded.paused_until
