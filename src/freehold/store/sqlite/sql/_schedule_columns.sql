-- In the order that `schedule_of` reads.
name, definition, created_at, anchor_at, counted_to, next_at, edit, last_at, last_job, fired, missed,
    skipped, skipped_at, skipped_for, problem, declared, declared_by, undeclared_at, edited_at,
    edited_by, paused_at, paused_by, pause_reason, paused_until
