exists (select 1 from flow f
    where f.id = :flow and f.canceled_at is null
    and case when :owner is null then f.closed_at is null and f.sealed_at is null else exists (select 1 from job where {lease_holds}) end)
