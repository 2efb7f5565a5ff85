-- The steps of a job in their order, and for waits the seconds that are left.
select name, number, kind, token, at, until, value::text, hidden,
    extract(epoch from until - {schema}.clock())::double precision
from {schema}.step where job_id = :id::bigint
order by number, name
