-- Leases ready jobs of one queue, in one statement that never waits for a lock.
--
-- If a limit applies, it leases nothing and returns which (`limited`, `keys`, `shared`); the verb then sends
-- it again after `try_limits` and `grant_leases`, in one transaction. A limit that those could not lock is
-- being counted by another claimer: its jobs stay as they are.
with locked_limits as materialized (
    select coalesce(string_to_array(current_setting('freehold.limits', true), chr(10)), array[]::text[])
        as names
),
shared as materialized (
    -- A limit over all tenants of the database; `grant_leases` has set the share of this claim.
    select exists (select from {control}.queue where name = '*' and max_leases is not null) as applies,
        case when :shared::boolean then
            nullif(current_setting('freehold.granted', true), '')::integer end as granted
),
rules as materialized (
    -- Pause, weight and limits of this queue, and of all queues together ('*').
    select name, paused_at, paused_until, weight, rate_starts, rate_seconds,
        case when name <> '*' or '{schema}' <> '{control}' then max_leases end as max_leases
    from {schema}.queue where name in (:queue::text, '*')
),
queue_rule as materialized (
    select coalesce(bool_or(paused_at is not null
               and coalesce(paused_until > (select {schema}.clock()), true)), false) as paused,
           coalesce(bool_or(max_leases is not null or rate_starts is not null), false) as limited,
           coalesce(max(weight) filter (where name = :queue::text), 1) as weight,
           least(:wanted::integer, min(case
               when not :locked::boolean then null
               when not 'q/' || name = any (names) then 0
               else {schema}.limit_remaining('q/' || name,
                   case when max_leases is not null then {schema}.count_leased(name, max_leases) end,
                   max_leases, rate_starts, rate_seconds) end),
               (select case when granted is not null then greatest(granted, 0) end from shared)) as room
    from rules, locked_limits
),
candidate as materialized (
    select id, stage, target, limit_key, lost_attempts,
        :tasks::text[] is null or task = any (:tasks::text[]) as known
    from {schema}.job
    where {after_cursor}
      and (select not paused and (:locked::boolean or not limited) and room > 0 from queue_rule)
      and (select :shared::boolean or not applies from shared)
    order by queue, (-priority), id
    limit :examined::integer
    for update skip locked
),
probe as materialized (
    -- A new lane job is stored as ready: its lane is looked up here, and the limit of its key.
    select c.*, row_number() over () as position,
        case when c.stage = {ready} and c.target is not null then
            (select h.id from {schema}.job h
             where h.target = c.target and h.stage in ({holds_lane})) end as holder,
        case when c.stage = {ready} and c.target is not null then
            (select l.id from {schema}.job l
             where l.target = c.target and l.stage in ({in_lane})
             order by l.target, l.id limit 1) end as first,
        case when c.target is null then false else exists (
            select from {schema}.lane l where l.target = c.target
              and coalesce(l.paused_until > (select {schema}.clock()), true)) end as lane_is_paused,
        case when c.limit_key is null then false else exists ({key_rule}) end as has_key_limit
    from candidate c
),
decided as materialized (
    select p.*,
        case when p.target is null or p.stage = {lane_head} then true
             when p.holder is null and p.first = p.id
             -- Two claimers may both see an empty lane; one of them gets the lock. The unique
             -- index job_lane_holder is the guarantee; the lock only avoids its error.
             then pg_try_advisory_xact_lock(hashtextextended(p.target, {schema_key}))
             else false end as may_run
    from probe p
),
key_candidate as materialized (
    select id, limit_key, row_number() over (partition by limit_key order by position) as key_position
    from decided, locked_limits
    where may_run and has_key_limit and not lane_is_paused and 'k/' || limit_key = any (names)
),
key_room as materialized (
    select c.limit_key, {schema}.limit_remaining('k/' || c.limit_key,
        case when r.max_leases is not null then {schema}.count_key_leases(c.limit_key, r.max_leases) end,
        r.max_leases, r.rate_starts, r.rate_seconds) as room, r.rate_seconds
    from (select distinct limit_key from key_candidate) c, lateral ({key_rule}) r
),
winner as materialized (
    -- In the order of the candidates. A job that is limited or once lost its worker is not prefetched.
    select id, known from (
        select id, known, has_key_limit or lost_attempts > 0 as never_ahead, row_number() over () as rank_in_claim
        from decided
        where may_run and not lane_is_paused and (not has_key_limit or id = any (array(
            select t.id from key_candidate t join key_room r using (limit_key)
            where t.key_position <= coalesce(r.room, t.key_position))))) w
    where not never_ahead or rank_in_claim <= :wanted::integer - :ahead::integer
    limit (select room from queue_rule)
),
instant as materialized (
    -- One instant and one token for the whole claim; an idle claim draws none. count() reads all winners
    -- first: the previous holder of a lane may have left it only just now, with an earlier token.
    select {schema}.clock() as now, nextval('{schema}.lease_token') as token
    where (select count(*) from winner where known) > 0
),
locked_holder as materialized (
    -- A follower is put behind the holder only while the holder cannot leave: its deletion promotes the
    -- next job of the lane, and must not miss one that was put behind it meanwhile.
    select h.target from {schema}.job h
    where h.id = any (array(select holder from decided where not may_run and holder is not null))
      and h.stage in ({holds_lane})
    for key share skip locked
),
locked_first as materialized (
    -- The same for a lane without a holder, whose first job is ready in another queue, or missed the
    -- lane's advisory lock.
    select l.id from {schema}.job l
    where l.id = any (array(select first from decided
                            where not may_run and holder is null and first <> id))
      and l.stage = {ready}
    for key share skip locked
),
locked_pause as materialized (
    -- The same for a paused lane: resuming it wakes the jobs that were marked before.
    select target from {schema}.lane
    where target = any (array(select target from decided where may_run and lane_is_paused))
    for key share skip locked
),
claimed as (
    update {schema}.job j
    set {becomes_leased}
    from instant
    where j.id = any (array(select id from winner where known))
    returning j.*
),
sidelined as (
    -- These leave the ready set, until the event that they wait for makes them ready again.
    update {schema}.job j
    set stage = case when j.id = any (array(select id from winner where not known)) then {parked}
                     when j.id = any (array(select id from decided where not may_run)) then {follower}
                     when j.id = any (array(select id from decided where lane_is_paused)) then {lane_paused}
                     else {limited} end,
        reason = case when j.id = any (array(select id from winner where not known))
                      then 'the claiming worker does not know this task' else reason end
    where j.id = any (array(
        select s.id from decided s
        where not s.may_run
          and (s.target in (select target from locked_holder)
               -- Never the first itself: it stays ready, because nothing would promote it.
               or (s.holder is null and s.first <> s.id
                   and s.first in (select id from decided where may_run
                                   union all select id from locked_first)))
        union all
        select s.id from decided s join locked_pause using (target) where s.may_run and s.lane_is_paused
        union all
        select t.id from key_candidate t join key_room r using (limit_key) where t.key_position > r.room
        union all
        select id from winner where not known))
    returning j.id, j.stage, j.attempt, j.reason, j.task
),
counted_starts as (
    insert into {schema}.rate_usage as s (name, slot, starts)
    select n.name, {schema}.rate_slot(n.rate_seconds), n.starts
    from (select 'q/' || q.name as name, q.rate_seconds, (select count(*) from claimed) as starts
          from {schema}.queue q
          where :locked::boolean and q.name in (:queue::text, '*') and q.rate_seconds is not null
          union all
          select 'k/' || r.limit_key, r.rate_seconds, count(*)
          from key_room r join claimed c using (limit_key)
          where r.rate_seconds is not null group by r.limit_key, r.rate_seconds) n
    where n.starts > 0
    on conflict (name, slot) do update set starts = s.starts + excluded.starts
),
parked as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, 'parked', 'queued', :owner::text, reason
    from sidelined where stage = {parked}
)
select {attempt_columns},
       (select count(*) from candidate) >= :examined::integer as more,
       ((select count(*) from candidate) - (select count(*) from claimed)
           - (select count(*) from sidelined))::integer as undecided,
       case when exists (select from decided where has_key_limit) then
           (select json_agg(distinct limit_key)::text from decided
            where has_key_limit and not limit_key = any (:keys::text[])) end as keys,
       (select limited from queue_rule) as limited,
       (select (:locked::boolean or granted >= 0) and room < :wanted::integer
        from queue_rule, shared) is true as limit_reached,
       (select weight from queue_rule) as weight,
       (select applies from shared) as shared,
       (select json_agg(distinct task)::text from sidelined where stage = {parked}) as unknown
from (values (1)) one left join claimed c on true
