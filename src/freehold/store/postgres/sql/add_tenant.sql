insert into {schema}.tenant (name, place, state, weight, max_slots, created_at)
values (:tenant::text, :place::text, 'active', :weight::real, :max_slots::integer, {schema}.clock())
on conflict (name) do nothing
returning {tenant_columns}
