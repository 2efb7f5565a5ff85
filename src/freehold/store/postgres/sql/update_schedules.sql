-- Changes schedules that are as they were read: no sweep has fired them, and nothing else changed them.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        name text, seen_at timestamptz, seen_edit integer, seen_counted_to timestamptz, definition text,
        anchor_at timestamptz, counted_to timestamptz, next_at timestamptz, declared text, declared_by text,
        undeclared_at timestamptz, edited_at timestamptz, edited_by text, paused_at timestamptz,
        paused_by text, pause_reason text, paused_until timestamptz,
        by text, via text, verb text, reason text, before text, after text)
),
held as materialized (
    select s.name from {schema}.schedule s join given g on g.name = s.name
    where s.name = any (array(select name from given))
      and s.next_at is not distinct from g.seen_at and s.edit = g.seen_edit
      and s.counted_to = g.seen_counted_to
    order by s.name
    for update of s
),
changed as (
    update {schema}.schedule s
    set definition = g.definition::json, anchor_at = g.anchor_at, counted_to = g.counted_to,
        next_at = g.next_at, edit = s.edit + 1, problem = null, declared = g.declared::json,
        declared_by = g.declared_by, undeclared_at = g.undeclared_at, edited_at = g.edited_at,
        edited_by = g.edited_by, paused_at = g.paused_at, paused_by = g.paused_by,
        pause_reason = g.pause_reason, paused_until = g.paused_until
    from held h join given g using (name)
    where s.name = h.name and s.name = any (array(select name from held))
    returning s.name
),
recorded as (
    {record_schedules}
)
select name from changed
