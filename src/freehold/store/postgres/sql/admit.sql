-- What waits for a limit_key becomes ready as far as there is room, behind `lock_limits`. Those
-- that are ready already come first. The claim counts again: this only wakes.
with given as (
    select limit_key from json_to_recordset(:rows::json) as g(limit_key text)
),
key_room as materialized (
    select c.limit_key,
        coalesce((select {schema}.room('k/' || c.limit_key,
            case when r.max_leases is not null then {schema}.count_key(c.limit_key, r.max_leases) end,
            r.max_leases, r.rate_starts, r.rate_seconds) from ({key_rule}) r), 1000)
        as room
    from given c
),
admitted as (
    update {schema}.job
    set stage = case when target is null then 'r' else 'R' end
    where id = any (array(
        select w.id
        from (select k.*, (select count(*) from (
                  select from {schema}.job j
                  where j.limit_key = k.limit_key and j.limit_key is not null
                    and j.stage in ('r','R','h') and j.stage in ('r','R')
                  limit k.room) x) as ready
              from key_room k where k.room > 0) k
        cross join lateral (
            select j.id from {schema}.job j
            where j.limit_key = k.limit_key and j.stage = 'l'
            order by j.limit_key, (-j.priority), j.id
            limit k.room - k.ready
            for update skip locked) w))
    returning id, queue
),
told as materialized (
    -- Whoever freed the room may have no slot free: others should hear of it.
    select pg_notify('freehold_{schema}', '+' || queue)
    from (select distinct queue from admitted) q
)
select id from admitted where (select count(*) from told) > 0
