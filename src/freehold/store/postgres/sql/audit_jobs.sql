-- Records changes of jobs that the next statements of this transaction make. The rows are locked, and have
-- the guard of those statements: a change that will have no effect is not recorded.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        id bigint, seen_stage "char", seen_state text, token bigint, stop_request text, before text, after text)
),
live as materialized (
    select j.id from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given where seen_stage is not null)) and j.stage = g.seen_stage
      and (g.token is null or j.lease_token = g.token and (
          j.stop_request is null or (j.stop_request = 'pause' and g.stop_request = 'cancel')))
    order by j.id for update of j
),
finished as materialized (
    select h.id from {schema}.history h join given g on g.id = h.id
    where h.id = any (array(select id from given where seen_stage is null)) and h.state = g.seen_state
    order by h.id for update of h
)
insert into {schema}.audit (at, by, via, verb, kind, subject, reason, before, after)
select {schema}.clock(), :by::text, :via::text, :verb::text, 'job', g.id::text, :reason::text, g.before::json, g.after::json
from given g
where g.id in (select id from live union all select id from finished)
order by g.id
