select target from {schema}.lane where paused_until <= {schema}.clock()
order by paused_until limit :limit::integer
