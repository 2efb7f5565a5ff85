-- A failed job is resolved: it stays finished, as canceled.
with done as (
    update {schema}.history set state = 'canceled', reason = coalesce(:reason::text, reason)
    where id = :id::bigint and state = 'failed'
    returning id, attempt
),
recorded as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, 'canceled', 'canceled', :by::text, :reason::text
    from done
)
select id, true from done
