-- Ready jobs -> leases, where nothing else is to be considered: no lane, no limit, no pause, no task
-- that is unknown here, none that lost its worker before. If one of them is not plain it takes none,
-- and leaves all of them to `claim`.
delete from looked;

insert into looked (id, won)
select id,
    target is null and limit_key is null and lost = 0
    and (:tasks is null or task in (select value from json_each(:tasks)))
from job
where queue = :queue and stage in ('r','R') and not {is_guarded}
order by queue, -priority, id
limit :wanted;

-- A token only where there is something to claim: an idle claim writes nothing.
update counter set value = value + 1
where name = 'lease_token' and (select min(won) from looked);

update job
set stage = 'h', attempt = attempt + 1, lease_owner = :owner,
    lease_token = (select value from counter where name = 'lease_token'), leased_at = clock(),
    lease_expires_at = clock() + cast(round(:lease_seconds * 1000000) as integer), reason = null
from looked
where job.id = looked.id and (select min(won) from looked)
returning job.id, lease_token, task, queue, args, attempt, max_attempts, lost, job.priority, target,
    timeout_seconds, policy, job.limit_key, null, null, null;

-- Whether more may be ready, and whether something has to be considered.
select null, null, null, null, null, null, null, null, null, null, null, null, null,
    (select count(*) from looked) >= :wanted,
    {is_guarded} or exists (select 1 from looked where not won),
    coalesce((select weight from queue where name = :queue), 1)
