-- One fold of a flow at a time; the others do not wait for it. Nor does a fold wait for a transaction that has the row of
-- a flow, as that of a producer which adds members to a batch: such flows are left for later, the others are folded. The
-- setting ends with the transaction; the statements that follow read which flows were locked.
with tried as materialized (
    select g.flow from json_to_recordset(:rows::json) as g(flow bigint)
    where pg_try_advisory_xact_lock(hashtextextended('flow/' || g.flow, {schema_key} + 3))
),
free as materialized (
    select f.id from {schema}.flow f where f.id = any (array(select t.flow from tried t))
    order by f.id for no key update skip locked
),
found as materialized (
    select t.flow, t.flow in (select id from free)
        or not exists (select from {schema}.flow f where f.id = t.flow) as is_free  -- it is deleted, its ends are not
    from tried t
)
select set_config('freehold.flows', coalesce(string_agg(flow::text, ',') filter (where is_free), ''), true),
    string_agg(flow::text, ',') filter (where not is_free)
from found
