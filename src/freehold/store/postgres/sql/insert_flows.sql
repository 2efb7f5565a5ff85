-- No row: a live flow has the key, and what follows of this flow is not stored either. A group needs its workflow.
insert into {schema}.flow (id, kind, name, key, held_key, created_at, created_by, parent_job, parent, node)
select g.id, g.kind, g.name, g.key, g.key, t.now, g.created_by, g.parent_job, g.parent, g.node
from json_to_recordset(:rows::json) as g(
    id bigint, kind text, name text, key text, created_by text, parent_job bigint, parent bigint, node integer),
    (select {schema}.clock() as now) t
where g.parent is null or exists (select from {schema}.flow w where w.id = g.parent)
on conflict (held_key) where held_key is not null do nothing
returning id
