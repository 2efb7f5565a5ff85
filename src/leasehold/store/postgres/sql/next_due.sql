select extract(epoch from
    (select run_at from {schema}.job where stage in ('w','b') order by run_at limit 1)
    - {schema}.clock())::double precision
