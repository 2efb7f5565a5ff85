select ((select run_at from job where stage in ('w','b') order by run_at limit 1) - clock())
    / 1000000.0
