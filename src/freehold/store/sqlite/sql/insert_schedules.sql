-- New schedules; one whose name exists stays as it is.
insert into schedule (name, definition, created_at, anchor_at, counted_to, next_at, declared,
    declared_by, edited_at, edited_by)
values (:name, :definition, clock(), :anchor_at, :counted_to, :next_at, :declared, :declared_by,
    :edited_at, :edited_by)
on conflict (name) do nothing
returning name;

{record_schedules}
