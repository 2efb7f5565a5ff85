-- Show leased jobs as running; told to whoever still holds the lease.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, token bigint)
),
held as materialized (
    {lease_holds} for no key update of j
),
started as (
    update {schema}.job set started_at = {schema}.clock()
    where id = any (array(select id from held)) and started_at is null
)
select id from held
