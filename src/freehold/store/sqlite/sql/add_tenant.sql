insert into tenant (name, shard, state, weight, max_slots, created_at)
values (:tenant, :shard, 'active', :weight, :max_slots, clock())
on conflict (name) do nothing
returning {tenant_columns}
