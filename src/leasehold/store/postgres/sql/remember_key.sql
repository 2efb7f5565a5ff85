-- An answer "there was one already" is remembered under its key like any other.
insert into {schema}.idempotency (key, job_id, expires_at)
select key, job_id, {schema}.clock() + make_interval(secs => seconds)
from json_to_recordset(:rows::json) as g(key text, job_id bigint, seconds double precision)
order by key
on conflict (key) do nothing
