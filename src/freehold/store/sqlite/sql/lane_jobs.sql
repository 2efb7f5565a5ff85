-- The live jobs of a lane: its holder and those that wait for it.
select id from (
    select id from job where target = :target and stage in ({ready}, {follower}, {paused_follower})
    union all
    select id from job where target = :target and stage in ({lane_head}, {parked}, {leased}, {backoff},
        {paused}, {failed}, {limited}, {lane_paused}))
order by id limit :limit
