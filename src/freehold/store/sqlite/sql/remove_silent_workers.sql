delete from worker
where expires_at <= clock() - cast(round(:silent_seconds * 1000000) as integer)
   or seen_at > clock()
returning owner
