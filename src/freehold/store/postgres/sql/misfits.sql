-- Parked jobs of these tasks whose arguments did not fit, and whether they have waited long enough.
-- `materialized`, or the planner would rather walk all jobs in the order of their ids.
with misfit as materialized (
    select id from {schema}.job
    where stage = {parked} and task = any (:tasks::text[]) and parked_until is not null
)
select id, task, args::text, parked_until <= (select {schema}.clock())
from {schema}.job
where id = any (array(select id from misfit where id > :after::bigint order by id limit :limit::integer))
  and stage = {parked} and parked_until is not null
order by id
