-- New schedules; one whose name exists stays as it is.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        name text, definition text, anchor_at timestamptz, counted_to timestamptz, next_at timestamptz,
        declared text, declared_by text, edited_at timestamptz, edited_by text,
        by text, via text, verb text, reason text, before text, after text)
),
changed as (
    insert into {schema}.schedule (name, definition, created_at, anchor_at, counted_to, next_at, declared,
        declared_by, edited_at, edited_by)
    select name, definition::json, {schema}.clock(), anchor_at, counted_to, next_at, declared::json,
        declared_by, edited_at, edited_by
    from given
    order by name
    on conflict (name) do nothing
    returning name
),
recorded as (
    {record_schedules}
)
select name from changed
