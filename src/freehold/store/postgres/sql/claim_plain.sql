-- Leases ready jobs where only the order matters: no lane, limit, pause, unknown task or lost worker. If one
-- candidate is not plain, it leases none and leaves all of them to `claim`, which takes the server three
-- times as long to start.
with queue_rule as materialized (
    select exists (select from {control}.queue where name = '*' and max_leases is not null)
               or coalesce(bool_or(num_nonnulls(paused_at, max_leases, rate_starts) > 0), false)
               as guarded,
           coalesce(max(weight) filter (where name = :queue::text), 1) as weight
    from {schema}.queue where name in (:queue::text, '*')
),
candidate as materialized (
    select id, target is null and limit_key is null and lost_attempts = 0
               and (:tasks::text[] is null or task = any (:tasks::text[])) as plain
    from {schema}.job
    where {after_cursor} and (select not guarded from queue_rule)
    order by queue, (-priority), id
    limit :wanted::integer
    for update skip locked
),
instant as materialized (
    select {schema}.clock() as now, nextval('{schema}.lease_token') as token
    where (select bool_and(plain) from candidate)
),
claimed as (
    update {schema}.job j
    set {becomes_leased}
    from instant
    where j.id = any (array(select id from candidate))
    returning j.*
)
select {attempt_columns},
       (select count(*) from candidate) >= :wanted::integer as more,
       guarded or exists (select from candidate where not plain) as needs_full_claim, weight
from queue_rule left join claimed c on true
