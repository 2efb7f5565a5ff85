name, shard, state, weight, max_slots, created_at, note, moving_to, moved_from
