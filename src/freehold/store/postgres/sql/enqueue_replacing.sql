-- The same, where a waiting job gets new values. If a claim has it in hand, this waits for the claim, and
-- then inserts: a leased row is in no index of keys. Time moves only where a job is not in its lane yet.
{waiting_job} do update set
        args = case when :replaces_args::boolean then excluded.args else j.args end,
        -- The names of secret arguments are stored with the policy.
        policy = case when :replaces_args::boolean then excluded.policy else j.policy end,
        meta = case when :replaces_meta::boolean then excluded.meta else j.meta end,
        priority = case when :replaces_priority::boolean then excluded.priority else j.priority end,
        tags = case when :replaces_tags::boolean then excluded.tags else j.tags end,
        run_at = case when {time_moves} then {later_time} else j.run_at end,
        stage = case when not ({time_moves}) then j.stage
                     when {later_time} > excluded.created_at then {scheduled} else {ready} end
    returning j.id, j.waiting_key, j.created_at
)
select position, stored.id, stored.id = given.id, stored.created_at from given join stored using (waiting_key)
