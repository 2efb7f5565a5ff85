-- Makes jobs that wait for a limit_key ready, as many as the limit has room for besides those that are
-- ready already. Runs after `lock_limits`. The claim counts again, so that admitting too many is harmless.
with given as (
    select limit_key from json_to_recordset(:rows::json) as g(limit_key text)
),
key_room as materialized (
    select c.limit_key,
        coalesce((select {schema}.limit_remaining('k/' || c.limit_key,
            case when r.max_leases is not null then {schema}.count_key_leases(c.limit_key, r.max_leases) end,
            r.max_leases, r.rate_starts, r.rate_seconds) from ({key_rule}) r), 1000)
        as room
    from given c
),
admitted as (
    update {schema}.job
    set stage = case when target is null then {ready} else {lane_head} end
    where id = any (array(
        select w.id
        from (select k.*, (select count(*) from (
                  select from {schema}.job j
                  where j.limit_key = k.limit_key and j.limit_key is not null
                    and j.stage in ({ready}, {lane_head}, {leased}) and j.stage in ({ready}, {lane_head})
                  limit k.room) x) as ready
              from key_room k where k.room > 0) k
        cross join lateral (
            select j.id from {schema}.job j
            where j.limit_key = k.limit_key and j.stage = {limited}
            order by j.limit_key, (-j.priority), j.id
            limit k.room - k.ready
            for update skip locked) w))
    returning id, queue
),
notified as materialized (
    -- The worker that freed the room may have no free slot: notify the others.
    select pg_notify('freehold_{schema}', '+' || queue)
    from (select distinct queue from admitted) q
)
select id from admitted where (select count(*) from notified) > 0
