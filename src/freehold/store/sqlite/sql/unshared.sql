-- Is there a limit of all queues, or are there tenants, which would not know of it?
select exists (select 1 from queue where name = '*' and max_leases is not null),
    exists (select 1 from tenant)
