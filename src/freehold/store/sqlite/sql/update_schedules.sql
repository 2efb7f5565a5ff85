-- Changes a schedule that is as it was read: no sweep has fired it, and nothing else changed it.
update schedule
set definition = :definition, anchor_at = :anchor_at, counted_to = :counted_to,
    next_at = :next_at, edit = edit + 1, problem = null, declared = :declared,
    declared_by = :declared_by, undeclared_at = :undeclared_at, edited_at = :edited_at,
    edited_by = :edited_by, paused_at = :paused_at, paused_by = :paused_by,
    pause_reason = :pause_reason, paused_until = :paused_until
where name = :name and next_at is :seen_at and edit = :seen_edit and counted_to = :seen_counted_to
returning name;

{record_schedules}
