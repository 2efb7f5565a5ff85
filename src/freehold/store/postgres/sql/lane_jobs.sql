-- The live jobs of a lane: its holder and those that wait for it.
select id from (
    select j.id from {schema}.job j
    where j.target = :target::text and j.stage in ({ready}, {follower}, {paused_follower})
    union all
    select j.id from {schema}.job j
    where j.target = :target::text and j.stage in ({lane_head}, {parked}, {leased}, {backoff}, {paused},
        {failed}, {limited}, {lane_paused})) lane
order by id limit :limit::integer
