-- properties: can_conflict
insert into {schema}.flow (id, kind, name, key, held_key, created_at, created_by, parent_job, parent, node)
select g.id, g.kind, g.name, g.key, g.key, t.now, g.created_by, g.parent_job, g.parent, g.node
from json_to_recordset(:rows::json) as g(
    id bigint, kind text, name text, key text, created_by text, parent_job bigint, parent bigint, node integer),
    (select {schema}.clock() as now) t
order by g.id
