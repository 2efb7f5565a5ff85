-- Members of a group that wait for the sources of its node.
select j.id from {schema}.job j
where j.lease_owner is null and j.waits_for = 'flow/' || :part::text and j.waits_for is not null
  and coalesce(j.stage = {pending}, false)  -- hidden from the index `job_attention`
limit :limit::integer
