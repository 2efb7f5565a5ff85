-- Stores the latest progress and new log lines of attempts whose lease still holds.
with given as (
    select * from json_to_recordset(:rows::json)
        as g(id bigint, token bigint, progress text, lines json)
),
held as materialized (
    {lease_holds} for no key update of j
),
shown as (
    update {schema}.job j set progress = g.progress::json
    from given g
    where j.id = any (array(select id from held)) and j.id = g.id and j.lease_token = g.token
      and g.progress is not null
),
added as (
    insert into {schema}.job_log (job_id, token, at, number, line)
    select g.id, g.token, t.now - make_interval(secs => l.ago_seconds), l.number, l.text
    from given g join held using (id, token)
    cross join lateral json_to_recordset(g.lines)
        as l(number smallint, text text, ago_seconds double precision),
    (select {schema}.clock() as now) t
)
select id from held
