-- Show leased jobs as running; told to whoever still holds the lease.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, token bigint)
),
held as materialized (
    select j.id from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given))
      and j.lease_token = g.token and j.lease_owner = :owner::text and {is_held}
      and j.lease_expires_at > {schema}.clock()
    order by j.id for no key update of j
),
started as (
    update {schema}.job set started_at = {schema}.clock()
    where id = any (array(select id from held)) and started_at is null
)
select id from held
