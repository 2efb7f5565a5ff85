exists (select 1 from job h
    where h.target = job.target and h.stage in ('R','u','h','b','p','x'))
