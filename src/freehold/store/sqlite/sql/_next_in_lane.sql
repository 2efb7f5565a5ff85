(select l.id from job l
    where l.target = k.target and l.stage in ({in_lane})
    order by l.target, l.id limit 1)
