-- The member that adds others, if it still holds its lease.
select j.id from {schema}.job j
    where :owner::text is not null and j.id = :id::bigint and j.lease_token = :token::bigint
      and j.lease_owner = :owner::text and {is_leased} and j.lease_expires_at > {schema}.clock()
    for no key update of j
