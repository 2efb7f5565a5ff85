select target from lane where paused_until <= clock() order by paused_until limit :limit
