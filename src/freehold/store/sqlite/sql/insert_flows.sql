insert into flow (id, kind, name, key, held_key, created_at, created_by, parent_job, parent, node)
values (:id, :kind, :name, :key, :key, clock(), :created_by, :parent_job, :parent, :node)
