{succeeding};

delete from job where {lease_holds}
returning id
