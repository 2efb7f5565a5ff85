-- What a job gathered is canceled if it has ended, or blocks its lane, and has not waited for it.
insert into {schema}.flow_end (flow, cancels)
select f.id, true
from {schema}.flow f
where f.parent_job = any (array(select id from json_to_recordset(:rows::json) as g(id bigint)))
  and f.parent_job is not null and f.closed_at is null
  -- No join, which would read all jobs.
  and coalesce((select j.stage from {schema}.job j where j.id = f.parent_job) = {failed}, true)
