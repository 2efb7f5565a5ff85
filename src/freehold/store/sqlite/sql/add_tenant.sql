insert into tenant (name, place, state, weight, max_slots, created_at)
values (:tenant, :place, 'active', :weight, :max_slots, clock())
on conflict (name) do nothing
returning {tenant_columns}
