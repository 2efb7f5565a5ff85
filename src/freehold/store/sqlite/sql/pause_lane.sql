insert into lane (target, paused_at, paused_by, pause_reason, paused_until)
values (:target, clock(), :by, :reason, :until)
on conflict (target) do update
set paused_at = excluded.paused_at, paused_by = excluded.paused_by,
    pause_reason = excluded.pause_reason, paused_until = excluded.paused_until
