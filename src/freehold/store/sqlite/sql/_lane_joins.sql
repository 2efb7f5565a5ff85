left join job h on h.target = n.target and h.stage in ({holds_lane})
left join job f on h.id is null and f.id = (select j.id from job j
    where j.target = n.target and j.stage in ({in_lane}) order by j.target, j.id limit 1)
left join lane p on p.target = n.target and coalesce(p.paused_until > clock(), 1)
