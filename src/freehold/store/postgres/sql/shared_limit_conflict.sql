-- On PostgreSQL a limit over all queues holds for tenants, too: there is no conflict.
select false, false
