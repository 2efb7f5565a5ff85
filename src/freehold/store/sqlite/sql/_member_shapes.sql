-- What members have in common, all but their arguments: see `enqueue`.
with shape as materialized (
    select json_extract(value, '$.number') as number, json_extract(value, '$.task') as task,
        json_extract(value, '$.queue') as queue, json_extract(value, '$.priority') as priority,
        json_extract(value, '$.max_attempts') as max_attempts, json_extract(value, '$.target') as target,
        json_extract(value, '$.limit_key') as limit_key,
        json_extract(value, '$.timeout_seconds') as timeout_seconds,
        json_extract(value, '$.tags') as tags, json_extract(value, '$.policy') as policy,
        json_extract(value, '$.meta') as meta,
        json_extract(value, '$.follows') as follows,
        json_extract(value, '$.start_by') as start_by,
        cast(round(json_extract(value, '$.start_by_seconds') * 1000000) as integer) as start_by_micros,
        coalesce(json_extract(value, '$.run_at'), clock()
            + cast(round(json_extract(value, '$.delay_seconds') * 1000000) as integer)) as due_at
    from json_each(:rows)
),
numbered as materialized (
    select key, value as number from json_each(:numbers)
)
