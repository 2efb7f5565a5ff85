insert into {schema}.tenant (name, shard, state, weight, max_slots, created_at)
values (:tenant::text, :shard::text, 'active', :weight::real, :max_slots::integer, {schema}.clock())
on conflict (name) do nothing
returning {tenant_columns}
