-- No row: a live flow has the key, and what follows of this flow is not stored either. A group needs its workflow.
insert into flow (id, kind, name, key, held_key, created_at, created_by, parent_job, parent, node)
select :id, :kind, :name, :key, :key, clock(), :created_by, :parent_job, :parent, :node
where :parent is null or exists (select 1 from flow w where w.id = :parent)
on conflict (held_key) where held_key is not null do nothing
returning id
