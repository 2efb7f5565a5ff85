-- Ready jobs -> leases, for one queue. Nobody else writes meanwhile: limits need no locks.
delete from looked;

-- Born ready, a lane job learns here how its lane stands, and one with a key of its limit.
-- `looked` is a temporary table of the connection, see `engine`: where it stays empty, only the
-- last statement follows.
insert into looked (id, priority, limit_key, goes, stopped, key_room, careful, known)
select k.id, k.priority, k.limit_key,
    k.target is null or k.stage = 'R' or (not {lane_held} and k.id = {next_in_lane}),
    k.target is not null and exists (select 1 from lane l where l.target = k.target
        and coalesce(l.paused_until > clock(), 1)),
    case when k.limit_key is not null then {key_room} end,
    k.lost > 0,
    :tasks is null or k.task in (select value from json_each(:tasks))
from (
    select * from job
    where queue = :queue and stage in ('r','R') and {door_open} and (:locked or not {is_limited})
    order by queue, -priority, id
    limit case when {queue_room} > 0 then :looked_at else 0 end) k;

-- A token only where there is something to claim: an idle claim writes nothing.
update counter set value = value + 1
where name = 'lease_token' and exists (select 1 from looked);

-- Out of the way of the others, until the event that they wait for makes them ready.
update job set stage = case when l.goes and l.stopped then 't' when l.goes then 'l' else 'f' end
from looked l
where job.id = l.id and (not l.goes or l.stopped or (l.key_room is not null
    and (select key_place from ({keyed}) k where k.id = l.id) > l.key_room));

-- In the candidates' order. What is limited, or once lost its worker, is not claimed ahead.
update looked set won = 1
where id in (
    select l.id from looked l
    where l.goes and not l.stopped
      and (l.key_room is null
           or (select key_place from ({keyed}) k where k.id = l.id) <= l.key_room)
      and (not (l.careful or l.key_room is not null) or (
           select count(*) from looked b where b.goes and not b.stopped
             and (-b.priority, b.id) < (-l.priority, l.id)) < :wanted - :ahead)
    order by -l.priority, l.id limit {queue_room});

insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), attempt, 'parked', 'queued', :owner, 'no worker knows this task'
from job join looked using (id)
where won and not known;

-- How often a queue, all of them, or a key have started. What is parked does not start.
insert into spent (name, slot, starts)
select 'q/' || r.name, {slot}, count(*) from queue r join looked on won and known
where r.name in (:queue, '*') and r.rate_seconds is not null
group by r.name
on conflict (name, slot) do update set starts = starts + excluded.starts;

insert into spent (name, slot, starts)
select 'k/' || k.limit_key, {slot}, count(*)
from looked k join key_limit r on r.key = {rule_key}
where k.won and k.known and r.rate_seconds is not null
group by k.limit_key
on conflict (name, slot) do update set starts = starts + excluded.starts;

update job
set stage = case when known then 'h' else 'u' end,
    attempt = case when known then attempt + 1 else attempt end,
    lease_owner = case when known then :owner end,
    lease_token = case when known then (select value from counter where name = 'lease_token') end,
    leased_at = case when known then clock() end,
    lease_expires_at =
        case when known then clock() + cast(round(:lease_seconds * 1000000) as integer) end,
    reason = case when known then null else 'no worker knows this task' end
from looked
where won and job.id = looked.id
returning case when stage = 'h' then job.id end, lease_token, task, queue, args, attempt,
    max_attempts, lost, job.priority, target, timeout_seconds, policy, job.limit_key,
    null, null, null, null, null, null, null;

-- Whether more may be ready, and how many nobody could settle.
select null, null, null, null, null, null, null, null, null, null, null, null, null,
    (select count(*) from looked) >= :looked_at,
    (select count(*) from looked join job using (id) where stage in ('r','R')),
    null, {is_limited}, :locked and {queue_room} <= 0,
    coalesce((select weight from queue where name = :queue), 1), 0
