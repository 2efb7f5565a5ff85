select name, max_leases, rate_starts, rate_seconds from queue
where max_leases is not null or rate_starts is not null
order by name
