-- properties: fills_candidates
-- Leases ready jobs of one queue. There is one writer at a time, so that limits need no locks.
delete from candidate;

-- A new lane job is stored as ready: its lane is looked up here, and the limit of its key. `candidate` is a
-- temporary table of the connection (engine.py).
insert into candidate (id, priority, limit_key, may_run, lane_is_paused, key_room, never_ahead, known)
select k.id, k.priority, k.limit_key,
    k.target is null or k.stage = {lane_head} or (not {lane_held} and k.id = {next_in_lane}),
    k.target is not null and exists (select 1 from lane l where l.target = k.target
        and coalesce(l.paused_until > clock(), 1)),
    case when k.limit_key is not null then {key_room} end,
    k.lost_attempts > 0,
    :tasks is null or k.task in (select value from json_each(:tasks))
from (
    select * from job
    where queue = :queue and stage in ({ready}, {lane_head}) and {queue_is_open} and (:locked or not {is_limited})
      and not {is_late}
    order by queue, -priority, id
    limit case when {queue_room} > 0 then :examined else 0 end) k;

-- An idle claim draws no token and writes nothing.
update counter set value = value + 1
where name = 'lease_token' and exists (select 1 from candidate);

-- These leave the ready set, until the event that they wait for makes them ready again.
update job set stage = case when l.may_run and l.lane_is_paused then {lane_paused} when l.may_run then {limited} else {follower} end
from candidate l
where job.id = l.id and (not l.may_run or l.lane_is_paused or (l.key_room is not null
    and (select key_position from ({keyed}) k where k.id = l.id) > l.key_room));

-- In the order of the candidates. A job that is limited or once lost its worker is not prefetched.
update candidate set won = 1
where id in (
    select l.id from candidate l
    where l.may_run and not l.lane_is_paused
      and (l.key_room is null
           or (select key_position from ({keyed}) k where k.id = l.id) <= l.key_room)
      and (not (l.never_ahead or l.key_room is not null) or (
           select count(*) from candidate b where b.may_run and not b.lane_is_paused
             and (-b.priority, b.id) < (-l.priority, l.id)) < :wanted - :ahead)
    order by -l.priority, l.id limit {queue_room});

insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), attempt, 'parked', 'queued', :owner, 'the claiming worker does not know this task'
from job join candidate using (id)
where won and not known;

-- Starts under the rates of the queue, of all queues, and of keys. A parked job does not start.
insert into rate_usage (name, slot, starts)
select 'q/' || r.name, {slot}, count(*) from queue r join candidate on won and known
where r.name in (:queue, '*') and r.rate_seconds is not null
group by r.name
on conflict (name, slot) do update set starts = starts + excluded.starts;

insert into rate_usage (name, slot, starts)
select 'k/' || k.limit_key, {slot}, count(*)
from candidate k join key_limit r on r.key = {rule_key}
where k.won and k.known and r.rate_seconds is not null
group by k.limit_key
on conflict (name, slot) do update set starts = starts + excluded.starts;

update job
set stage = case when known then {leased} else {parked} end,
    attempt = case when known then attempt + 1 else attempt end,
    lease_owner = case when known then :owner end,
    lease_token = case when known then (select value from counter where name = 'lease_token') end,
    leased_at = case when known then clock() end,
    lease_expires_at =
        case when known then clock() + cast(round(:lease_seconds * 1000000) as integer) end,
    reason = case when known then null else 'the claiming worker does not know this task' end
from candidate
where won and job.id = candidate.id
returning case when stage = {leased} then job.id end, lease_token, task, queue, args, attempt,
    max_attempts, lost_attempts, job.priority, target, timeout_seconds, policy, job.limit_key, meta,
    coalesce(parked_until <= leased_at, 0), null, null, null, null, null, null, null, null;

-- Whether more may be ready, and how many candidates stayed ready.
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
    (select count(*) from candidate) >= :examined,
    (select count(*) from candidate join job using (id) where stage in ({ready}, {lane_head})),
    null, {is_limited}, :locked and {queue_room} <= 0,
    coalesce((select weight from queue where name = :queue), 1), 0,
    (select json_group_array(distinct task) from job join candidate using (id) where won and not known)
