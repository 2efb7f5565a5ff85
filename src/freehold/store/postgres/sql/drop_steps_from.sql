-- Deletes a step and the later ones of jobs that run again from there. The rows of the jobs are locked, and have
-- the guard of the statement that queues them again: without it no step goes.
with given as (
    select * from json_to_recordset(:rows::json) as g(id bigint, seen_stage "char", seen_state text, step text)
),
live as materialized (
    select j.id from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given where seen_stage is not null)) and j.stage = g.seen_stage
    order by j.id for update of j
),
finished as materialized (
    select h.id from {schema}.history h join given g on g.id = h.id
    where h.id = any (array(select id from given where seen_stage is null)) and h.state = g.seen_state
    order by h.id for update of h
),
first as materialized (
    select s.job_id, s.number from {schema}.step s join given g on g.id = s.job_id and g.step = s.name
    where s.job_id = any (array(select id from live union all select id from finished))
)
delete from {schema}.step s using first f
where s.job_id = any (array(select job_id from first)) and s.job_id = f.job_id and s.number >= f.number
