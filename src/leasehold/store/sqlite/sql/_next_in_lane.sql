(select l.id from job l
    where l.target = job.target and l.stage in ('r','f','q')
    order by l.target, l.id limit 1)
