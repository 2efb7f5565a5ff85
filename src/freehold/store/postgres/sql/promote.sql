-- The next of each freed lane becomes its holder. Runs after the statement that freed it, in
-- the same transaction, so that its snapshot is younger than the locks of that one.
with freed as (
    select distinct target from json_to_recordset(:rows::json) as g(target text)
),
first as materialized (
    select f.target, l.id, l.stage
    from freed f
    cross join lateral (
        select j.id, j.stage from {schema}.job j
        where j.target = f.target and j.stage in ({in_lane})
        order by j.target, j.id limit 1) l
    where (select h.id from {schema}.job h
           where h.target = f.target and h.stage in ({holds_lane}) limit 1) is null
),
ready as materialized (
    -- A claimer may have locked it: then it stays ready and needs no promotion. Waiting for the claimer
    -- here could deadlock, because it may be waiting for this transaction.
    select id from {schema}.job
    where id = any (array(select id from first where stage = {ready})) and stage = {ready}
    order by id for update skip locked
),
following as materialized (
    select id from {schema}.job
    where id = any (array(select id from first where stage in ({follower}, {paused_follower}))) and stage in ({follower}, {paused_follower})
    order by id for update
),
promoted as (
    update {schema}.job
    set stage = case when stage = {paused_follower} then {paused} else {lane_head} end
    where id = any (array(select id from ready union all select id from following))
    returning id
)
-- Lanes whose next job vanished or is locked: the verb tries them again.
select target from first where id not in (select id from promoted)
