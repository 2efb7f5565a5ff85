left join {schema}.job h on h.target = n.target and h.stage in ({holds_lane})
left join lateral (
    select j.* from {schema}.job j where j.target = n.target and j.stage in ({in_lane})
    order by j.target, j.id limit 1) f on h.id is null
left join {schema}.lane p on p.target = n.target
    and coalesce(p.paused_until > {schema}.clock(), true)
