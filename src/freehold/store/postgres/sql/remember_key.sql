-- "This job existed already" is remembered under the caller's key like any other result.
insert into {schema}.idempotency as i (key, job_id, expires_at)
select key, job_id, {schema}.clock() + make_interval(secs => seconds)
from json_to_recordset(:rows::json) as g(key text, job_id bigint, seconds double precision)
order by key
on conflict (key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
    where i.expires_at <= {schema}.clock()
      and not exists (select from {schema}.job j where j.id = i.job_id)
