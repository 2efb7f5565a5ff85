-- Whether there is a limit over all queues, and whether there are tenants, to which it would not apply.
select exists (select 1 from queue where name = '*' and max_leases is not null),
    exists (select 1 from tenant)
