-- A producer adds until the flow is sealed. A member that runs adds while its lease holds: it has not ended, so that a
-- flow which looks closed is open again as soon as the retry of this member is folded.
select f.id from {schema}.flow f
    where f.id = :flow::bigint and f.canceled_at is null
      and case when :owner::text is null then f.closed_at is null and f.sealed_at is null else exists (select from held) end
    for no key update
