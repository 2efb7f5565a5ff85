-- Ready jobs -> leases, for one queue, in one autocommitted statement that waits for nobody.
with candidate as materialized (
    select id, stage, target, task
    from {schema}.job
    where {ready_in_queue}
      and not exists (
          select from {schema}.queue q
          where q.name = :queue::text and q.paused_at is not null
            and coalesce(q.paused_until > (select {schema}.clock()), true))
    order by queue, (-priority), id
    limit :looked_at::integer
    for update skip locked
),
probe as materialized (
    -- Born ready, a lane job learns here how its lane stands.
    select c.*,
        case when c.stage = 'r' and c.target is not null then
            (select h.id from {schema}.job h
             where h.target = c.target and h.stage in ('R','u','h','b','p','x')) end as holder,
        case when c.stage = 'r' and c.target is not null then
            (select l.id from {schema}.job l
             where l.target = c.target and l.stage in ('r','f','q')
             order by l.target, l.id limit 1) end as first
    from candidate c
),
settled as materialized (
    select p.id, p.target, p.first, p.holder, p.stage,
        case when p.target is null or p.stage = 'R' then true
             when p.holder is null and p.first = p.id
             -- Two claimers may both see an empty lane; one of them gets the lock. The unique
             -- index job_holder is the guarantee, this only avoids running into it.
             then pg_try_advisory_xact_lock(hashtextextended(p.target, {schema_key}))
             else false end as wins
    from probe p
),
winner as materialized (
    -- In the candidates' order, which materialized CTEs keep.
    select id from settled where wins limit :wanted::integer
),
moment as materialized (
    -- One instant and one token for the whole claim; an idle claim draws none.
    select {schema}.clock() as now, nextval('{schema}.lease_token') as token
    where exists (select from winner)
),
guard as materialized (
    -- A loser may be put behind the holder only while the holder cannot leave: its deletion
    -- promotes the next, and must not miss one that was put behind it meanwhile.
    select h.target from {schema}.job h
    where h.id = any (array(select holder from settled where not wins and holder is not null))
      and h.stage in ('R','u','h','b','p','x')
    for key share skip locked
),
ahead as materialized (
    -- The same where nobody holds the lane yet, and its first stands ready in another queue, or
    -- only missed the lane's advisory lock.
    select l.id from {schema}.job l
    where l.id = any (array(select first from settled
                            where not wins and holder is null and first <> id))
      and l.stage = 'r'
    for key share skip locked
),
claimed as (
    update {schema}.job j
    set stage = case when known then 'h' else 'u' end,
        attempt = case when known then attempt + 1 else attempt end,
        lease_owner = case when known then :owner::text end,
        lease_token = case when known then token end,
        leased_at = case when known then now end,
        lease_expires_at =
            case when known then now + make_interval(secs => :lease_seconds::double precision) end,
        reason = case when known then null else 'no worker knows this task' end
    from moment,
         (select w.id, :tasks::text[] is null or task = any (:tasks::text[]) as known
          from winner w join candidate using (id)) w
    where j.id = any (array(select id from winner)) and j.id = w.id
    returning j.*
),
demoted as (
    update {schema}.job j set stage = 'f'
    where j.id = any (array(
        select s.id from settled s
        where not s.wins
          and (s.target in (select target from guard)
               -- Never the first itself: it stays ready, or nobody would ever promote it.
               or (s.holder is null and s.first <> s.id
                   and s.first in (select id from winner union all select id from ahead)))))
    returning j.id
),
parked as (
    insert into {schema}.event (job_id, at, attempt, kind, state, by, reason)
    select id, {schema}.clock(), attempt, 'parked', 'queued', :owner::text, reason
    from claimed where stage = 'u'
)
select c.id, c.lease_token, c.task, c.queue, c.args::text, c.attempt, c.max_attempts, c.lost,
       c.priority, c.target, c.timeout_seconds, c.policy::text,
       (select count(*) from candidate) >= :looked_at::integer as more,
       ((select count(*) from candidate) - (select count(*) from claimed)
           - (select count(*) from demoted))::integer as unsettled
from (values (1)) one left join claimed c on c.stage = 'h'
