-- Ready jobs -> leases, for one queue, in one statement that waits for nobody.
--
-- Where a limit has to be kept, it takes nothing and says so (`limited`, `keys`, `shared`); the verb
-- then sends it again behind `try_limits` and `grant_leases`, in one transaction. What those could not
-- lock is in another claimer's hands just now: it stays as it is.
with mine as materialized (
    select coalesce(string_to_array(current_setting('freehold.limits', true), chr(10)), array[]::text[])
        as names
),
shared as materialized (
    -- All tenants of the database share a limit; `grant_leases` has said how much of it is ours.
    select exists (select from {control}.queue where name = '*' and max_leases is not null) as stands,
        case when :shared::boolean then
            nullif(current_setting('freehold.granted', true), '')::integer end as granted
),
said as materialized (
    -- What somebody has said about this queue, or about all of them.
    select name, paused_at, paused_until, weight, rate_starts, rate_seconds,
        case when name <> '*' or '{schema}' <> '{control}' then max_leases end as max_leases
    from {schema}.queue where name in (:queue::text, '*')
),
door as materialized (
    select coalesce(bool_or(paused_at is not null
               and coalesce(paused_until > (select {schema}.clock()), true)), false) as shut,
           coalesce(bool_or(max_leases is not null or rate_starts is not null), false) as limited,
           coalesce(max(weight) filter (where name = :queue::text), 1) as weight,
           least(:wanted::integer, min(case
               when not :locked::boolean then null
               when not 'q/' || name = any (names) then 0
               else {schema}.room('q/' || name,
                   case when max_leases is not null then {schema}.count_leased(name, max_leases) end,
                   max_leases, rate_starts, rate_seconds) end),
               (select case when granted is not null then greatest(granted, 0) end from shared)) as room
    from said, mine
),
candidate as materialized (
    select id, stage, target, limit_key, lost,
        :tasks::text[] is null or task = any (:tasks::text[]) as known
    from {schema}.job
    where {beyond_place}
      and (select not shut and (:locked::boolean or not limited) and room > 0 from door)
      and (select :shared::boolean or not stands from shared)
    order by queue, (-priority), id
    limit :looked_at::integer
    for update skip locked
),
probe as materialized (
    -- Born ready, a lane job learns here how its lane stands, and one with a key of its limit.
    select c.*, row_number() over () as place,
        case when c.stage = 'r' and c.target is not null then
            (select h.id from {schema}.job h
             where h.target = c.target and h.stage in ({holds_lane})) end as holder,
        case when c.stage = 'r' and c.target is not null then
            (select l.id from {schema}.job l
             where l.target = c.target and l.stage in ({in_lane})
             order by l.target, l.id limit 1) end as first,
        case when c.target is null then false else exists (
            select from {schema}.lane l where l.target = c.target
              and coalesce(l.paused_until > (select {schema}.clock()), true)) end as stopped,
        case when c.limit_key is null then false else exists ({key_rule}) end as keyed
    from candidate c
),
settled as materialized (
    select p.*,
        case when p.target is null or p.stage = 'R' then true
             when p.holder is null and p.first = p.id
             -- Two claimers may both see an empty lane; one of them gets the lock. The unique
             -- index job_holder is the guarantee, this only avoids running into it.
             then pg_try_advisory_xact_lock(hashtextextended(p.target, {schema_key}))
             else false end as goes
    from probe p
),
key_turn as materialized (
    select id, limit_key, row_number() over (partition by limit_key order by place) as key_place
    from settled, mine
    where goes and keyed and not stopped and 'k/' || limit_key = any (names)
),
key_room as materialized (
    select c.limit_key, {schema}.room('k/' || c.limit_key,
        case when r.max_leases is not null then {schema}.count_key(c.limit_key, r.max_leases) end,
        r.max_leases, r.rate_starts, r.rate_seconds) as room, r.rate_seconds
    from (select distinct limit_key from key_turn) c, lateral ({key_rule}) r
),
winner as materialized (
    -- In the candidates' order. What is limited, or once lost its worker, is not claimed ahead.
    select id, known from (
        select id, known, keyed or lost > 0 as careful, row_number() over () as turn
        from settled
        where goes and not stopped and (not keyed or id = any (array(
            select t.id from key_turn t join key_room r using (limit_key)
            where t.key_place <= coalesce(r.room, t.key_place))))) w
    where not careful or turn <= :wanted::integer - :ahead::integer
    limit (select room from door)
),
moment as materialized (
    -- One instant and one token for the whole claim; an idle claim draws none. Counted, so that
    -- all have been won by then: the one before may have left its lane a moment ago.
    select {schema}.clock() as now, nextval('{schema}.lease_token') as token
    where (select count(*) from winner where known) > 0
),
guard as materialized (
    -- A loser may be put behind the holder only while the holder cannot leave: its deletion
    -- promotes the next, and must not miss one that was put behind it meanwhile.
    select h.target from {schema}.job h
    where h.id = any (array(select holder from settled where not goes and holder is not null))
      and h.stage in ({holds_lane})
    for key share skip locked
),
ahead as materialized (
    -- The same where nobody holds the lane yet, and its first stands ready in another queue, or
    -- only missed the lane's advisory lock.
    select l.id from {schema}.job l
    where l.id = any (array(select first from settled
                            where not goes and holder is null and first <> id))
      and l.stage = 'r'
    for key share skip locked
),
shut_lane as materialized (
    -- And where a lane is paused: whoever resumes it wakes those that were stopped before.
    select target from {schema}.lane
    where target = any (array(select target from settled where goes and stopped))
    for key share skip locked
),
claimed as (
    update {schema}.job j
    set {becomes_leased}
    from moment
    where j.id = any (array(select id from winner where known))
    returning j.*
),
aside as (
    -- Out of the way of the others, until the event that they wait for makes them ready.
    update {schema}.job j
    set stage = case when j.id = any (array(select id from winner where not known)) then 'u'
                     when j.id = any (array(select id from settled where not goes)) then 'f'
                     when j.id = any (array(select id from settled where stopped)) then 't'
                     else 'l' end,
        reason = case when j.id = any (array(select id from winner where not known))
                      then 'no worker knows this task' else reason end
    where j.id = any (array(
        select s.id from settled s
        where not s.goes
          and (s.target in (select target from guard)
               -- Never the first itself: it stays ready, or nobody would ever promote it.
               or (s.holder is null and s.first <> s.id
                   and s.first in (select id from settled where goes
                                   union all select id from ahead)))
        union all
        select s.id from settled s join shut_lane using (target) where s.goes and s.stopped
        union all
        select t.id from key_turn t join key_room r using (limit_key) where t.key_place > r.room
        union all
        select id from winner where not known))
    returning j.id, j.stage, j.attempt, j.reason
),
spend as (
    insert into {schema}.spent as s (name, slot, starts)
    select n.name, {schema}.slot(n.rate_seconds), n.starts
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
    from aside where stage = 'u'
)
select {attempt_columns},
       (select count(*) from candidate) >= :looked_at::integer as more,
       ((select count(*) from candidate) - (select count(*) from claimed)
           - (select count(*) from aside))::integer as unsettled,
       case when exists (select from settled where keyed) then
           (select json_agg(distinct limit_key)::text from settled
            where keyed and not limit_key = any (:keys::text[])) end as keys,
       (select limited from door) as limited,
       (select (:locked::boolean or granted >= 0) and room < :wanted::integer
        from door, shared) is true as held_back,
       (select weight from door) as weight,
       (select stands from shared) as shared
from (values (1)) one left join claimed c on true
