-- Stores steps of attempts whose lease still holds. A step that exists already stays as it is: its write is
-- repeated because the result of the first one was lost. The first step of a job marks its policy, which
-- every claim reads, so that an attempt without earlier steps need not look for any. Returns the leases
-- that hold, each with whether a step of it was added.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        id bigint, token bigint, name text, number integer, kind text, seconds double precision, value text,
        hidden boolean)
),
held as materialized (
    {lease_holds} for no key update of j
),
added as (
    insert into {schema}.step (job_id, name, number, token, at, kind, until, value, hidden)
    select g.id, g.name, g.number, g.token, t.now, g.kind, t.now + make_interval(secs => g.seconds),
        g.value::json, g.hidden
    from given g, (select {schema}.clock() as now) t
    where (g.id, g.token) in (select id, token from held)
    order by g.id, g.name
    on conflict (job_id, name) do nothing
    returning job_id, token
),
marked as (
    {mark_steps}
)
select id, token, (id, token) in (select job_id, token from added) from held
