-- No producer adds members any more. The row of the worklist lets the fold see whether all have ended.
with sealed as (
    update {schema}.flow set sealed_at = {schema}.clock(), change = change + 1
    where id = :flow::bigint and sealed_at is null
    returning id
),
counted as (
    insert into {schema}.flow_end (flow) select id from sealed
)
select id from sealed
