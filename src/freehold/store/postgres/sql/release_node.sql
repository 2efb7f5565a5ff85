-- A node waits no longer: it is canceled, or its group is released. Then no member may be left that waits: another
-- process that releases the same group can die before it commits.
update {schema}.flow_node set waits = false
where flow = :flow::bigint and number = :number::integer and waits
  and (:part::bigint is null
       or not exists (select from {schema}.job j
                      where j.lease_owner is null and j.waits_for = 'flow/' || :part::text and j.waits_for is not null
                        and coalesce(j.stage = {pending}, false)))  -- hidden from the index `job_attention`
returning number
