-- Ready jobs -> leases, where nothing else is to be considered: no lane, no limit, no pause, no task
-- that is unknown here, none that lost its worker before. If one of them is not plain it takes none, and
-- leaves all of them to `claim`, which the server takes three times as long to begin with.
with door as materialized (
    select exists (select from {control}.queue where name = '*' and max_leases is not null)
               or coalesce(bool_or(num_nonnulls(paused_at, max_leases, rate_starts) > 0), false)
               as guarded,
           coalesce(max(weight) filter (where name = :queue::text), 1) as weight
    from {schema}.queue where name in (:queue::text, '*')
),
candidate as materialized (
    select id, target is null and limit_key is null and lost = 0
               and (:tasks::text[] is null or task = any (:tasks::text[])) as plain
    from {schema}.job
    where {beyond_place} and (select not guarded from door)
    order by queue, (-priority), id
    limit :wanted::integer
    for update skip locked
),
moment as materialized (
    select {schema}.clock() as now, nextval('{schema}.lease_token') as token
    where (select bool_and(plain) from candidate)
),
claimed as (
    update {schema}.job j
    set {becomes_leased}
    from moment
    where j.id = any (array(select id from candidate))
    returning j.*
)
select {attempt_columns},
       (select count(*) from candidate) >= :wanted::integer as more,
       guarded or exists (select from candidate where not plain) as odd, weight
from door left join claimed c on true
