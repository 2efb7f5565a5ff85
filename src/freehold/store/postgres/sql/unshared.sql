-- Is there a limit of all queues, or are there tenants, which would not know of it? All do.
select false, false
