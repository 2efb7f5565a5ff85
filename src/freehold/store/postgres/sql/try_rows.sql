-- What claims and sweeps do with rows, for a transaction that is rolled back. Rows that another transaction
-- has locked are left out. Only ready rows keep their lane: it could not have several holders.
with chosen as materialized (
    select id from {schema}.job
    where id = any (array(select id from json_to_recordset(:rows::json) as g(id bigint)))
    order by id for update skip locked
)
update {schema}.job
set stage = :stage::"char", target = case when :stage::text = {ready} then target end,
    attempt = attempt + :counted::integer, lost_attempts = lost_attempts + :counted::integer,
    lease_owner = case when :stage::text = {leased} then '-' end,
    lease_token = case when :stage::text = {leased} then 0 end,
    leased_at = case when :stage::text = {leased} then {schema}.clock() end,
    lease_expires_at = case when :stage::text = {leased} then {schema}.clock() end,
    heartbeat_at = null, started_at = null, stop_request = null, waiting_key = null
where id = any (array(select id from chosen))
returning id
