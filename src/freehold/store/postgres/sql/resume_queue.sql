with locked as materialized (
    select name, coalesce(paused_until > {schema}.clock(), true) as was_paused
    from {schema}.queue where name = :queue::text and paused_at is not null for update
),
resumed as (
    update {schema}.queue
    set paused_at = null, paused_by = null, pause_reason = null, paused_until = null
    where name = any (array(select name from locked))
)
select name from locked where was_paused
