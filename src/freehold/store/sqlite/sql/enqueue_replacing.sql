-- The same, where a waiting job gets new values. Time moves only where a job is not in its lane yet.
update job
set args = case when :replaces_args then :args else args end,
    -- The names of secret arguments are stored with the policy.
    policy = case when :replaces_args then :policy else policy end,
    meta = case when :replaces_meta then :meta else meta end,
    priority = case when :replaces_priority then :priority else priority end,
    tags = case when :replaces_tags then :tags else tags end,
    run_at = case when {time_moves} then {later_time} else run_at end,
    stage = case when not ({time_moves}) then stage
                 when {later_time} > clock() then {scheduled} else {ready} end
where waiting_key = :waiting_key and stage <> {leased}
returning :position, id, 0, created_at;

{new_waiting_job}
